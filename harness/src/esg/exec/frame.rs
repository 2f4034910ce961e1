//! One message: two lengths, JSON, bytes.
use thiserror::Error;

/// The two lengths that a message begins with.
const HEAD: usize = 8;

/// The most bytes that the parts of a message may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) json: usize,
    pub(super) blob: usize,
}

/// What came is no message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum FrameError {
    #[error("a message of {json} bytes of JSON and {blob} bytes, more than it may have")]
    TooLong { json: usize, blob: usize },
    #[error("{0} bytes after the end of a message")]
    Trailing(usize),
    #[error("the end of its output within a message")]
    Cut,
}

/// A message that came in whole.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) json: Vec<u8>,
    pub(super) blob: Vec<u8>,
}

/// What a message of these lengths begins with. `None` if it is too long to be said.
pub(super) fn head(json: usize, blob: usize) -> Option<[u8; HEAD]> {
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&u32::try_from(json).ok()?.to_le_bytes());
    head[4..].copy_from_slice(&u32::try_from(blob).ok()?.to_le_bytes());
    Some(head)
}

/// A message that is coming in. It holds what came, never what was announced.
#[derive(Debug)]
pub(super) struct Incoming {
    bounds: Bounds,
    head: Vec<u8>,
    json: usize,
    blob: usize,
    message: Message,
}

impl Incoming {
    pub(super) fn new(bounds: Bounds) -> Self {
        let head = Vec::with_capacity(HEAD);
        Self { bounds, head, json: 0, blob: 0, message: Message::default() }
    }

    /// Takes in what came.
    ///
    /// # Errors
    /// If that can not be part of one message.
    pub(super) fn take(&mut self, mut bytes: &[u8]) -> Result<(), FrameError> {
        if self.head.len() < HEAD {
            move_to(&mut self.head, &mut bytes, HEAD);
            let [a, b, c, d, e, f, g, h] = self.head[..] else {
                return Ok(());
            };
            self.json = u32::from_le_bytes([a, b, c, d]) as usize;
            self.blob = u32::from_le_bytes([e, f, g, h]) as usize;
            if self.json > self.bounds.json || self.blob > self.bounds.blob {
                return Err(FrameError::TooLong { json: self.json, blob: self.blob });
            }
        }
        move_to(&mut self.message.json, &mut bytes, self.json);
        move_to(&mut self.message.blob, &mut bytes, self.blob);
        if bytes.is_empty() { Ok(()) } else { Err(FrameError::Trailing(bytes.len())) }
    }

    /// Whether the message is whole.
    pub(super) fn is_whole(&self) -> bool {
        self.head.len() == HEAD
            && self.message.json.len() == self.json
            && self.message.blob.len() == self.blob
    }

    /// The message.
    ///
    /// # Errors
    /// If it is not whole.
    pub(super) fn done(self) -> Result<Message, FrameError> {
        if self.is_whole() { Ok(self.message) } else { Err(FrameError::Cut) }
    }
}

/// Moves bytes until `to` has `until` of them.
fn move_to(to: &mut Vec<u8>, from: &mut &[u8], until: usize) {
    let (moved, rest) = from.split_at(from.len().min(until - to.len()));
    to.extend_from_slice(moved);
    *from = rest;
}
