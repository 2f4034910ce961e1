//! The framing of messages: two lengths, JSON, bytes.
use thiserror::Error;

/// The size of the two lengths at the start of a message.
pub(in crate::exec) const HEAD: usize = 8;

/// The largest sizes of the parts of a message.
#[derive(Clone, Copy, Debug)]
pub(in crate::exec) struct Bounds {
    pub(in crate::exec) json: usize,
    pub(in crate::exec) blob: usize,
}

/// The input is not a message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(in crate::exec) enum FrameError {
    #[error("a message of {json} bytes of JSON and {blob} bytes exceeds the limit")]
    TooLong { json: usize, blob: usize },
    #[error("{0} bytes after the end of a message")]
    Trailing(usize),
    #[error("its output ended within a message")]
    Cut,
}

/// A complete message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::exec) struct Message {
    pub(in crate::exec) json: Vec<u8>,
    pub(in crate::exec) blob: Vec<u8>,
}

/// The header of a message with these lengths. `None` if it is too long to encode.
pub(in crate::exec) fn head(json: usize, blob: usize) -> Option<[u8; HEAD]> {
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&u32::try_from(json).ok()?.to_le_bytes());
    head[4..].copy_from_slice(&u32::try_from(blob).ok()?.to_le_bytes());
    Some(head)
}

/// A message that is being received. It allocates for what arrived, never for an announced length.
#[derive(Debug)]
pub(in crate::exec) struct Incoming {
    bounds: Bounds,
    head: Vec<u8>,
    json: usize,
    blob: usize,
    message: Message,
}

impl Incoming {
    pub(in crate::exec) fn new(bounds: Bounds) -> Self {
        let head = Vec::with_capacity(HEAD);
        Self { bounds, head, json: 0, blob: 0, message: Message::default() }
    }

    /// Where the next bytes go, and how many at most. `None` if the message is complete.
    pub(in crate::exec) fn next(&mut self) -> Option<(&mut Vec<u8>, usize)> {
        let Self { head, json, blob, message, .. } = self;
        [(head, HEAD), (&mut message.json, *json), (&mut message.blob, *blob)]
            .into_iter()
            .map(|(part, length)| (length - part.len(), part))
            .find_map(|(left, part)| (left > 0).then_some((part, left)))
    }

    /// Whether its lengths are known.
    pub(in crate::exec) fn is_begun(&self) -> bool {
        self.head.len() == HEAD
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// If they exceed the message, or announce one that is too large.
    pub(in crate::exec) fn take(&mut self, mut bytes: &[u8]) -> Result<(), FrameError> {
        while let Some((part, left)) = self.next()
            && !bytes.is_empty()
        {
            let (now, rest) = bytes.split_at(left.min(bytes.len()));
            part.extend_from_slice(now);
            bytes = rest;
            self.came()?;
        }
        if bytes.is_empty() { Ok(()) } else { Err(FrameError::Trailing(bytes.len())) }
    }

    /// Accounts for bytes that were read into [`next`](Self::next).
    ///
    /// # Errors
    /// If they announce a message that is too large.
    pub(in crate::exec) fn came(&mut self) -> Result<(), FrameError> {
        if let [a, b, c, d, e, f, g, h] = self.head[..]
            && self.message == Message::default()
        {
            self.json = u32::from_le_bytes([a, b, c, d]) as usize;
            self.blob = u32::from_le_bytes([e, f, g, h]) as usize;
            if self.json > self.bounds.json || self.blob > self.bounds.blob {
                return Err(FrameError::TooLong { json: self.json, blob: self.blob });
            }
        }
        Ok(())
    }

    /// Whether the message is complete.
    pub(in crate::exec) fn is_whole(&self) -> bool {
        self.head.len() == HEAD
            && self.message.json.len() == self.json
            && self.message.blob.len() == self.blob
    }

    /// The message.
    ///
    /// # Errors
    /// If it is incomplete.
    pub(in crate::exec) fn done(self) -> Result<Message, FrameError> {
        if self.is_whole() { Ok(self.message) } else { Err(FrameError::Cut) }
    }
}
