//! The host of the framed protocol: starts a worker process of any language, takes turns with it, and
//! maps its end. What a language is, it asks a `Launch`.
mod ending;
pub(super) mod frame;
mod launch;
pub(super) mod pipe;
mod process;
pub(super) mod reply;
pub(super) mod request;
mod scratch;
mod spare;
mod turn;
mod usage;
mod worker;

pub(super) use frame::Message;
pub(super) use launch::{Launch, Opening};
pub(super) use process::Fault;
pub(super) use scratch::Scratch;
pub(crate) use scratch::discard as discard_scratch;
pub use worker::WorkerProcess;
