//! One request and its reply.
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::exec::wire::Blob;

use super::frame::{HEAD, head};
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
    let mut parts: Vec<&[u8]> = vec![&first];
    parts.extend(blobs.iter().map(|blob| &***blob));
    let message = process.turn(&parts, may)?;
    match reply::parse(&message.json, op, &nonce) {
        Ok(reply) => Ok((reply, message.blob)),
        Err(Bad::Failed(what)) => Err(Fault::Failed(what)),
        Err(Bad::Reply(what)) => Err(Fault::Garbled(what)),
    }
}
