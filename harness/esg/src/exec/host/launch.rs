//! What the host has to know of a language.
use std::fmt;
use std::path::Path;
use std::process::Command;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::exec::limits::Limits;
use crate::exec::start_error::StartError;
use crate::exec::trust::{Isolation, Readable};
use crate::exec::wire::Blob;

use super::process::{Allowance, Fault, Process};
use super::turn::turn;

/// How to start a worker of one language. The rest is the protocol.
pub(in crate::exec) trait Launch: fmt::Debug + Send + Sync {
    /// What values and fingerprints depend on, besides limits, isolation and scratch.
    fn kind(&self) -> &str;

    /// The limits of a step.
    fn limits(&self) -> &Limits;

    /// The files outside of scratch that steps may read.
    fn readable(&self) -> &Readable;

    /// The program that is started.
    fn program(&self) -> &Path;

    /// What isolates the process from the machine.
    fn isolation(&self) -> Isolation;

    /// The process, without pipes and working directory.
    ///
    /// # Errors
    /// If its isolation cannot be described.
    fn command(&self, scratch: &str) -> Result<Command, StartError>;

    /// Makes a worker of the new process.
    ///
    /// # Errors
    /// If it does not become one.
    fn greet(&self, scratch: &str, greeting: Greeting<'_>) -> Result<(), Fault>;
}

/// The first turn of a process.
#[derive(Debug)]
pub(in crate::exec) struct Greeting<'a> {
    pub(super) process: &'a mut Process,
    pub(super) may: Allowance,
}

impl Greeting<'_> {
    /// Sends the first request and parses the reply.
    ///
    /// # Errors
    /// As any other turn.
    pub(in crate::exec) fn hello<T: DeserializeOwned>(
        self,
        body: impl Serialize,
        blobs: &[&Blob],
    ) -> Result<(T, Vec<u8>), Fault> {
        turn(self.process, "hello", body, blobs, self.may)
    }
}
