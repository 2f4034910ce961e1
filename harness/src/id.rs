//! Identifiers. Each has its own type, so that one cannot be passed for another.

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use crate::clock::UtcMillis;

/// The greatest length of a session id, in bytes.
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

        /// `{}` is the id as it is. `{:#}`, for people, escapes its control characters.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match f.alternate() {
                    true => escaped(&self.0, f),
                    false => f.write_str(&self.0),
                }
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
    /// The id of an agent, passed to [`Harness::agent`](crate::Harness::agent).
    AgentId
}
text_id! {
    /// The id of a session: one state with its log.
    ///
    /// Any non-empty text of at most [`MAX_SESSION_ID`] bytes is valid, with any characters. Ids
    /// are never used as paths.
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
    /// The id of a run: one execution of a session until it settles.
    RunId
}
text_id! {
    /// The id of a question that a loop waits for. An answer refers to it.
    InterruptId
}

fn escaped(id: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    id.chars().try_for_each(|c| match c.is_control() {
        true => write!(f, "{}", c.escape_default()),
        false => f.write_char(c),
    })
}

/// An invalid session id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSessionId {
    /// The id is empty.
    #[error("a session id cannot be empty (omit `.session(..)` for a fresh id)")]
    Empty,
    /// The id is longer than [`MAX_SESSION_ID`] bytes.
    #[error("a session id of {bytes} bytes is too long (at most {MAX_SESSION_ID} bytes)")]
    TooLong {
        /// The length of the id, in bytes.
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

    /// A fresh id that sorts by creation time (UUID version 7).
    pub fn fresh() -> Self {
        Self(fresh())
    }
}

impl AgentId {
    /// An id from its text, to list or to claim the sessions of the agent that has it.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into().into())
    }
}

impl RunId {
    pub(crate) fn fresh() -> Self {
        Self(fresh())
    }
}

/// A UUID of version 7. Its random part is drawn once per process and then counted up, which avoids
/// a system call for each run. The ids are unique but not secret.
fn fresh() -> Arc<str> {
    static PROCESS: LazyLock<u128> = LazyLock::new(|| uuid::Uuid::new_v4().as_u128());
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let random = PROCESS.wrapping_add(u128::from(COUNT.fetch_add(1, Ordering::Relaxed)));
    let mut tail = [0; 10];
    tail.copy_from_slice(&random.to_be_bytes()[6..]);
    let id = uuid::Builder::from_unix_timestamp_millis(UtcMillis::now().0, &tail).into_uuid();
    let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
    Arc::from(&*id.hyphenated().encode_lower(&mut text))
}

impl InterruptId {
    /// An id from its text, for example from a queue or a URL.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into().into())
    }
}

impl From<&str> for InterruptId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

/// One entry into a step, numbered per session. Retries, crashes and answers keep the position; a
/// new visit of the same step gets a new one.
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

/// The number of an entry in a session's log, from 1 without gaps.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// The next seq.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The fencing token of a lease. Each new lease of a session has a higher one, and the store
/// rejects writes with a lower one.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Fence(pub u64);

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Identifies one entry into a step across processes: the session and the position. Every attempt at
/// that position has the same `OpId`, so it can be an idempotency key for outside systems. A session
/// that is deleted and made again under its id has other `OpId`s.
///
/// ```text
/// order-17/5f0c62b1a9d3e470/3
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OpId {
    /// The session.
    pub session: SessionId,
    /// Which of the sessions that had this id: 16 hexadecimal digits.
    pub incarnation: String,
    /// The entry into the step.
    pub position: Position,
    /// The item, in a step that has items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
}

impl fmt::Display for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.session, self.incarnation, self.position)?;
        match self.item {
            Some(item) => write!(f, ".{item}"),
            None => Ok(()),
        }
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
        let session = SessionId::new("order-17").unwrap();
        let op = OpId { session, incarnation: "a1".to_owned(), position: Position(3), item: None };
        assert_eq!(op.to_string(), "order-17/a1/3");
        assert_eq!(OpId { item: Some(2), ..op }.to_string(), "order-17/a1/3.2");
        let session = SessionId::new("a\u{1b}[2J\n日本").unwrap();
        assert_eq!(session.to_string(), "a\u{1b}[2J\n日本");
        assert_eq!(format!("{session:#}"), "a\\u{1b}[2J\\n日本");
        let ids: std::collections::HashSet<SessionId> =
            (0..1_000).map(|_| SessionId::fresh()).collect();
        assert_eq!(ids.len(), 1_000);
        assert!(ids.iter().all(|id| {
            uuid::Uuid::parse_str(id.as_str())
                .is_ok_and(|id| id.get_version() == Some(uuid::Version::SortRand))
        }));
    }
}
