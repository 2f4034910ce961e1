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

use super::frame::Message;
use super::process::Fault;
use super::turn::Asked;

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

    /// Whether a second process is started ahead, to take the place of the first.
    fn has_spare(&self) -> bool;

    /// The process, without pipes and working directory. It may write in `folder`, which is at the path
    /// `scratch` when steps run.
    ///
    /// # Errors
    /// If its isolation cannot be described.
    fn command(&self, scratch: &str, folder: &Path) -> Result<Command, StartError>;

    /// The first request to a new process, which becomes a worker. If it `waits`, it prepares itself
    /// without touching scratch, replies that it waits, and continues to its second reply after one more byte.
    ///
    /// # Errors
    /// If the request is too large.
    fn opening(&self, scratch: &str, waits: bool) -> Result<Opening, Fault>;

    /// Checks the reply.
    ///
    /// # Errors
    /// If the process has not become a worker.
    fn welcome(&self, opening: &Opening, reply: Message) -> Result<(), Fault>;
}

/// The first request to a process.
#[derive(Debug)]
pub(in crate::exec) struct Opening {
    asked: Asked<'static>,
    first: Vec<u8>,
    blob: Option<Blob>,
}

impl Opening {
    /// # Errors
    /// If it is too large.
    pub(in crate::exec) fn new(body: impl Serialize, blob: Option<Blob>) -> Result<Self, Fault> {
        let blobs: Vec<&Blob> = blob.iter().collect();
        let (asked, first) = Asked::new("hello", body, &blobs)?;
        Ok(Self { asked, first, blob })
    }

    /// Its message, in parts.
    pub(super) fn parts(&self) -> Vec<&[u8]> {
        let blob = self.blob.iter().map(|blob| &**blob);
        std::iter::once(&*self.first).chain(blob).collect()
    }

    /// Parses the reply.
    ///
    /// # Errors
    /// As of any other request.
    pub(in crate::exec) fn reply<T: DeserializeOwned>(
        &self,
        message: Message,
    ) -> Result<(T, Vec<u8>), Fault> {
        self.asked.reply(message)
    }
}
