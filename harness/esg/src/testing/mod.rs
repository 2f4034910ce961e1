//! For tests: the contract of executors, and a worker without an interpreter.
mod contract;
mod tiny;

pub use contract::{ContractReport, ExecutorContract, Sources};
pub use tiny::TinyWorker;

#[cfg(test)]
mod tests;
