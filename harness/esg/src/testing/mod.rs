//! For tests: a worker without an interpreter.
mod tiny;

pub use tiny::TinyWorker;
