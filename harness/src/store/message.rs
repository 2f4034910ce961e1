//! Messages to a session, from processes that do not hold it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::InterruptId;

/// The number of a message in the inbox of its session. The first message is 1; 0 stands for none.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct InboxSeq(pub u64);

impl fmt::Display for InboxSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A message to a session: an answer, a stop, the next input.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// What the message decides. The first message under a key stays.
    pub key: String,
    /// Equal for messages with the same meaning: it leaves out the sender and the time.
    pub digest: String,
    /// The interrupt that the message answers or lets expire; it must be open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<InterruptId>,
    /// Whether the message reports that the interrupt has expired. Such a message is accepted only
    /// after that time, and an answer only before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expiry: bool,
    /// The payload, opaque to the store.
    pub body: Vec<u8>,
}

impl Message {
    /// A message that refers to no interrupt.
    #[must_use]
    pub fn new(
        key: impl Into<String>,
        digest: impl Into<String>,
        body: impl Into<Vec<u8>>,
    ) -> Self {
        Self {
            key: key.into(),
            digest: digest.into(),
            interrupt: None,
            expiry: false,
            body: body.into(),
        }
    }
}

/// Prints the length of the body instead of the body, which may be confidential.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("key", &self.key)
            .field("digest", &self.digest)
            .field("interrupt", &self.interrupt)
            .field("expiry", &self.expiry)
            .field("bytes", &self.body.len())
            .finish()
    }
}

/// A message in the inbox of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredMessage {
    /// Its number.
    pub seq: InboxSeq,
    /// The message.
    pub message: Message,
}

impl StoredMessage {
    /// The message with this number.
    #[must_use]
    pub fn new(seq: InboxSeq, message: Message) -> Self {
        Self { seq, message }
    }
}

/// The answer to a [send](super::SessionStore::send).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sent {
    /// All messages are in the inbox, some perhaps from before. The last message of the inbox has
    /// this number.
    Accepted(InboxSeq),
    /// A message with another digest has the same key. No message of the call was kept.
    Taken {
        /// The key.
        key: String,
        /// The message that was first.
        first: Message,
    },
    /// A message refers to an interrupt that is not open, or comes after its expiry, or reports the
    /// expiry too early. No message of the call was kept.
    TooLate {
        /// The key of that message.
        key: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_of_a_message_is_not_printed() {
        let message = Message::new("input/1", "d", *b"the door code is 4711");
        let printed = format!("{message:?}");
        let digits = format!("{:?}", &message.body[..4]);
        assert!(printed.contains("input/1") && printed.contains("bytes: 21"), "{printed}");
        assert!(!printed.contains("4711") && !printed.contains(digits.trim_matches(['[', ']'])));
    }
}
