//! What the stores in databases share: how batches and phases are stored, and the keys of lists.

use harness::store::{Message, NewEntry, Phase, StoreError, rules};
use harness::{Seq, SessionId};

/// The most bytes of entries in a batch, and of messages in a call.
pub(crate) const MAX_BATCH: u64 = 64 << 20;

/// How a phase is stored. The numbers are in users' databases.
pub(crate) fn phase_number(phase: Phase) -> Result<i16, StoreError> {
    Ok(match phase {
        Phase::Running => 1,
        Phase::Interrupted => 2,
        Phase::Waiting => 3,
        Phase::Ended => 4,
        Phase::Stopped => 5,
        Phase::Exhausted => 6,
        Phase::Failed => 7,
        other => {
            return Err(StoreError::Unsuitable(format!(
                "this version of the store does not know the phase {other:?} (upgrade it)"
            )));
        }
    })
}

pub(crate) fn encode(value: &impl serde::Serialize) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(value).map_err(|error| StoreError::unavailable("failed to encode", error))
}

/// The bytes of the entries of a batch, which are not too many.
pub(crate) fn batch_size(entries: &[NewEntry<'_>]) -> Result<u64, StoreError> {
    limited(entries.iter().map(|entry| entry.bytes.len() as u64).sum())
}

/// The bytes of messages, which are not too many.
pub(crate) fn messages_size(messages: &[Message]) -> Result<u64, StoreError> {
    let size = |message: &Message| message.key.len() + message.digest.len() + message.body.len();
    limited(messages.iter().map(|message| size(message) as u64).sum())
}

fn limited(bytes: u64) -> Result<u64, StoreError> {
    match bytes > MAX_BATCH {
        true => Err(StoreError::TooLarge { bytes, limit: MAX_BATCH }),
        false => Ok(bytes),
    }
}

/// Entries as they are stored, one after the other: each after four bytes that have its length and
/// whether it is a snapshot.
pub(crate) fn frame(entries: &[NewEntry<'_>]) -> Vec<u8> {
    let bytes: usize = entries.iter().map(|entry| entry.bytes.len() + 4).sum();
    let mut framed = Vec::with_capacity(bytes);
    for entry in entries {
        // A batch has at most 64 MiB.
        let head = (entry.bytes.len() as u32) << 1 | u32::from(entry.snapshot);
        framed.extend(head.to_le_bytes());
        framed.extend_from_slice(entry.bytes);
    }
    framed
}

/// The entries of a framed batch, and whether each is a snapshot; `None` if it is not whole.
pub(crate) fn unframe(mut framed: &[u8]) -> Option<Vec<(&[u8], bool)>> {
    let mut entries = Vec::new();
    while !framed.is_empty() {
        let (head, rest) = framed.split_first_chunk::<4>()?;
        let head = u32::from_le_bytes(*head);
        let (entry, rest) = rest.split_at_checked((head >> 1) as usize)?;
        entries.push((entry, head & 1 == 1));
        framed = rest;
    }
    Some(entries)
}

/// The key of a row of a list, taken apart: the id of its session, and that of its interrupt.
pub(crate) fn apart(key: &[u8]) -> (Vec<u8>, Option<&[u8]>) {
    let session = rules::session_part(key);
    let mut id = Vec::with_capacity(session.len());
    let mut escaped = false;
    for byte in session {
        // After a zero byte stands 255, which is not part of the id.
        if !escaped {
            id.push(*byte);
        }
        escaped = !escaped && *byte == 0;
    }
    (id, key.get(session.len()..).and_then(|rest| rest.strip_prefix(&[0, 1])))
}

pub(crate) fn corrupt(session: &SessionId, after: u64, what: impl Into<String>) -> StoreError {
    StoreError::Corrupt { session: session.clone(), after: Seq(after), what: what.into() }
}
