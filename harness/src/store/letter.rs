//! Messages to a session, from those who do not hold it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::InterruptId;

/// Counts the letters posted to a session, from its beginning.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Mail(pub u64);

impl fmt::Display for Mail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A message to a session: an answer, a stop, the next input.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
    /// What it decides. The first letter under a key stays.
    pub key: String,
    /// Tells letters that mean the same from those that do not: who wrote it and when is left out.
    pub digest: String,
    /// The question it answers or lets expire; the question must be open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<InterruptId>,
    /// Says that the question has expired: it is taken only after that, as an answer is taken only
    /// before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expiry: bool,
    /// The message, opaque to the store.
    pub body: Vec<u8>,
}

/// What a letter says is not printed by accident: how long it is and its digest tell letters apart.
impl fmt::Debug for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Letter")
            .field("key", &self.key)
            .field("digest", &self.digest)
            .field("question", &self.question)
            .field("expiry", &self.expiry)
            .field("bytes", &self.body.len())
            .finish()
    }
}

/// What became of letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Posted {
    /// They are there, now or since before; and so many were posted so far.
    Here(Mail),
    /// Another letter has come first under a key. None of the letters was posted.
    Taken {
        /// The key.
        key: String,
        /// The letter that was first.
        first: Letter,
    },
    /// A letter is for a question that is not open, or not any more. None of the letters was
    /// posted.
    TooLate {
        /// The key of that letter.
        key: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_letter_says_is_not_printed() {
        let body = b"the door code is 4711".to_vec();
        let (key, digest) = ("input/1".to_owned(), "d".to_owned());
        let letter = Letter { key, digest, question: None, expiry: false, body };
        let printed = format!("{letter:?}");
        let digits = format!("{:?}", &letter.body[..4]);
        assert!(printed.contains("input/1") && printed.contains("bytes: 21"), "{printed}");
        assert!(!printed.contains("4711") && !printed.contains(digits.trim_matches(['[', ']'])));
    }
}
