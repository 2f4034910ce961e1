//! Identifiers: one type for each thing that has an id, so that none can be passed for another.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The longest session id, in bytes.
pub const MAX_SESSION_ID: usize = 1024;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({:?})", stringify!($name), &*self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

text_id! {
    /// The name an agent was given by [`Harness::agent`](crate::Harness::agent).
    AgentId
}
text_id! {
    /// The name of a session: the durable life of one state.
    ///
    /// Any non-empty text of at most [`MAX_SESSION_ID`] bytes is legal, whatever characters it
    /// holds; ids never become paths.
    ///
    /// ```
    /// use harness::SessionId;
    ///
    /// assert!(SessionId::new("../../customer 7").is_ok());
    /// assert!(SessionId::new("").is_err());
    /// ```
    SessionId
}
text_id! {
    /// One advance of a session until it settles.
    RunId
}
text_id! {
    /// A question that a loop waits on. An answer names it.
    InterruptId
}

/// A session id that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSessionId {
    /// The id is empty.
    #[error("a session id cannot be empty (leave `.session(..)` out for a fresh id)")]
    Empty,
    /// The id is longer than [`MAX_SESSION_ID`] bytes.
    #[error("a session id of {bytes} bytes is too long (at most {MAX_SESSION_ID} bytes)")]
    TooLong {
        /// How long the id is, in bytes.
        bytes: usize,
    },
}

impl SessionId {
    /// Checks `id`.
    ///
    /// # Errors
    /// [`InvalidSessionId`] if it is empty or longer than [`MAX_SESSION_ID`] bytes.
    pub fn new(id: impl AsRef<str>) -> Result<Self, InvalidSessionId> {
        let id = id.as_ref();
        match id.len() {
            0 => Err(InvalidSessionId::Empty),
            bytes if bytes > MAX_SESSION_ID => Err(InvalidSessionId::TooLong { bytes }),
            _ => Ok(Self(id.into())),
        }
    }

    /// A fresh id that sorts by the time it was made (UUID version 7).
    pub fn fresh() -> Self {
        Self(uuid::Uuid::now_v7().to_string().into())
    }
}

impl AgentId {
    pub(crate) fn new(id: impl Into<String>) -> Self {
        Self(id.into().into())
    }
}

impl RunId {
    pub(crate) fn fresh() -> Self {
        Self(uuid::Uuid::now_v7().to_string().into())
    }
}

impl InterruptId {
    /// Takes an id as it was written down, say in a queue or a URL.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into().into())
    }
}

impl From<&str> for InterruptId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

/// One entry into a step, numbered over the session. Retries, crashes and answers keep it; a new
/// visit of the same step gets a new one.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Position(pub u64);

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Names one entry into a step across processes: the session's id and the position. Every attempt
/// at that position has the same one, so it serves as an idempotency key for the outside world.
///
/// ```text
/// order-17/3
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OpId {
    /// The session.
    pub session: SessionId,
    /// The entry into the step.
    pub position: Position,
}

impl fmt::Display for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.session, self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_are_any_text_of_bounded_length() {
        for id in ["../../x", "a/b", "日本", "nul\0", " "] {
            assert_eq!(SessionId::new(id).unwrap().as_str(), id);
        }
        assert_eq!(SessionId::new(""), Err(InvalidSessionId::Empty));
        assert!(SessionId::new("x".repeat(1024)).is_ok());
        assert_eq!(
            SessionId::new("x".repeat(1025)),
            Err(InvalidSessionId::TooLong { bytes: 1025 })
        );
    }

    #[test]
    fn ids_print_as_their_text() {
        let op = OpId { session: SessionId::new("order-17").unwrap(), position: Position(3) };
        assert_eq!(op.to_string(), "order-17/3");
        assert_ne!(SessionId::fresh(), SessionId::fresh());
    }
}
