//! One request and its reply.
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::exec::wire::Blob;

use super::frame::{HEAD, Message, head};
use super::process::{Allowance, Fault, Process};
use super::reply::{self, Bad};
use super::request::Envelope;

/// The size of a usual request, in bytes.
const ROOM: usize = 512;

/// Sends one request and parses the reply.
pub(in crate::exec) fn turn<T: DeserializeOwned>(
    process: &mut Process,
    op: &str,
    body: impl Serialize,
    blobs: &[&Blob],
    may: Allowance,
) -> Result<(T, Vec<u8>), Fault> {
    let (asked, first) = Asked::new(op, body, blobs)?;
    let mut parts: Vec<&[u8]> = vec![&first];
    parts.extend(blobs.iter().map(|blob| &***blob));
    asked.reply(process.turn(&parts, may)?)
}

/// What the reply to a request must refer to.
#[derive(Debug)]
pub(in crate::exec) struct Asked<'a> {
    op: &'a str,
    nonce: String,
}

impl<'a> Asked<'a> {
    /// A request, and its message up to the blobs.
    ///
    /// # Errors
    /// If it is too large.
    pub(in crate::exec) fn new(
        op: &'a str,
        body: impl Serialize,
        blobs: &[&Blob],
    ) -> Result<(Self, Vec<u8>), Fault> {
        let nonce = Uuid::new_v4().simple().to_string();
        // One write, which wakes the other side once.
        let mut first = Vec::with_capacity(ROOM);
        first.extend_from_slice(&[0; HEAD]);
        serde_json::to_writer(&mut first, &Envelope { op, nonce: &nonce, body })
            .map_err(|error| Fault::System(error.into()))?;
        let length = blobs.iter().map(|blob| blob.len()).sum();
        let head = head(first.len() - HEAD, length)
            .ok_or_else(|| Fault::System(std::io::Error::other("a request of more than 4 GiB")))?;
        first[..HEAD].copy_from_slice(&head);
        Ok((Self { op, nonce }, first))
    }

    /// Parses the reply.
    ///
    /// # Errors
    /// If it reports a failure, or is none.
    pub(in crate::exec) fn reply<T: DeserializeOwned>(
        &self,
        message: Message,
    ) -> Result<(T, Vec<u8>), Fault> {
        match reply::parse(&message.json, self.op, &self.nonce) {
            Ok(reply) => Ok((reply, message.blob)),
            Err(Bad::Failed(what)) => Err(Fault::Failed(what)),
            Err(Bad::Reply(what)) => Err(Fault::Garbled(what)),
        }
    }
}
