//! Why a session could not be read or changed.

use std::error::Error;
use std::fmt;

use crate::clock::UtcMillis;
use crate::compat::Incompatible;
use crate::id::{AgentId, InvalidSessionId, Seq, SessionId};
use crate::inbox::{AnswerError, NotGiven};
use crate::journal::ReadError;
use crate::session::{EntryError, ReplayError};
use crate::store::StoreError;

/// Why a session could not be read or changed. It is unchanged, unless the
/// [store's error](Self::store_error) is [ambiguous](StoreError::is_ambiguous).
///
/// The message includes the cause, and [`source`](std::error::Error::source) returns what that cause
/// leaves out of its own message.
pub struct SessionsError {
    kind: Box<Kind>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Kind {
    #[error(transparent)]
    InvalidSessionId(#[from] InvalidSessionId),
    #[error(
        "no store in which to find session `{0:#}` (give the agent the store of its sessions: \
         `.store(..)`)"
    )]
    NoStore(SessionId),
    #[error("no session `{0:#}` in the store")]
    NotFound(SessionId),
    #[error("session `{0:#}` exists already (fork into an unused id)")]
    Exists(SessionId),
    #[error(
        "session `{session:#}` belongs to agent `{found}`, not to `{expected}` (use the agent that \
         began it)"
    )]
    WrongAgent { session: SessionId, expected: AgentId, found: AgentId },
    #[error(
        "session `{session:#}` is held by a run (its lease expires at {until}; stop the run, and try \
         again when it has settled)"
    )]
    Busy { session: SessionId, until: UtcMillis },
    #[error(
        "entries of session `{session:#}` before {first} were pruned (read from entry {first} on)"
    )]
    Pruned { session: SessionId, first: Seq },
    #[error("session `{session:#}` has no entry {seq} (its last entry is {head})")]
    NoSuchEntry { session: SessionId, seq: Seq, head: Seq },
    #[error(
        "no commit ends with entry {seq} of session `{session:#}` ({})",
        match nearest {
            Some(nearest) => format!("the last one before it ends with entry {nearest}"),
            None => "none of the kept entries before it ends one".to_owned(),
        }
    )]
    NotABoundary { session: SessionId, seq: Seq, nearest: Option<Seq> },
    #[error(
        "session `{0:#}` is in the middle of a step, which a run has left (resume it first: a state is \
         edited at rest)"
    )]
    NotAtRest(SessionId),
    #[error(
        "session `{session:#}` has changed since entry {seen} (its last entry is {head} now; read it \
         again, and then edit it)"
    )]
    Stale { session: SessionId, seen: Seq, head: Seq },
    #[error("the edit of session `{session:#}` is refused: {why}")]
    BadEdit { session: SessionId, why: String },
    #[error("session `{session:#}`: {cause}")]
    Answer { session: SessionId, cause: AnswerError },
    #[error("session `{session:#}`: {cause}")]
    Incompatible { session: SessionId, cause: Incompatible },
    #[error("failed to write what session `{session:#}` replays to: {cause}")]
    Unwritable { session: SessionId, cause: EntryError },
    #[error("session `{session:#}`: {cause}")]
    Replay { session: SessionId, cause: ReplayError },
    #[error("{0}")]
    Store(StoreError),
}

impl SessionsError {
    /// The session has changed since the editor has read it.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        matches!(*self.kind, Kind::Stale { .. })
    }

    /// A run has left the session in the middle of a step: its process has ended.
    pub fn is_not_at_rest(&self) -> bool {
        matches!(*self.kind, Kind::NotAtRest(_))
    }

    /// The edit does not fit the state.
    pub fn is_bad_edit(&self) -> bool {
        matches!(*self.kind, Kind::BadEdit { .. })
    }

    /// There is no such session.
    pub fn is_not_found(&self) -> bool {
        matches!(*self.kind, Kind::NotFound(_))
    }

    /// The session's id is empty or too long. The store was not asked.
    pub fn is_invalid_session_id(&self) -> bool {
        matches!(*self.kind, Kind::InvalidSessionId(_))
    }

    /// The agent has no store.
    pub fn is_no_store(&self) -> bool {
        matches!(*self.kind, Kind::NoStore(_))
    }

    /// The session belongs to another agent.
    pub fn is_wrong_agent(&self) -> bool {
        matches!(*self.kind, Kind::WrongAgent { .. })
    }

    /// A run holds the session.
    pub fn is_busy(&self) -> bool {
        matches!(*self.kind, Kind::Busy { .. })
    }

    /// The session that a fork would create exists already.
    pub fn is_exists(&self) -> bool {
        matches!(*self.kind, Kind::Exists(_))
    }

    /// The first entry that is kept, if requested entries were pruned.
    pub fn pruned(&self) -> Option<Seq> {
        match *self.kind {
            Kind::Pruned { first, .. } => Some(first),
            _ => None,
        }
    }

    /// Requested entries were pruned. [`pruned`](Self::pruned) returns the first one that is kept.
    pub fn is_pruned(&self) -> bool {
        self.pruned().is_some()
    }

    /// The session has no entry with that number.
    pub fn is_no_such_entry(&self) -> bool {
        matches!(*self.kind, Kind::NoSuchEntry { .. })
    }

    /// No commit ends with that entry, so the session cannot be forked there.
    pub fn is_not_a_boundary(&self) -> bool {
        matches!(*self.kind, Kind::NotABoundary { .. })
    }

    /// After [`is_not_a_boundary`](Self::is_not_a_boundary): the last entry before it with which a
    /// commit ends, if it is kept.
    pub fn nearest_boundary(&self) -> Option<Seq> {
        match *self.kind {
            Kind::NotABoundary { nearest, .. } => nearest,
            _ => None,
        }
    }

    /// Why an answer was refused.
    pub fn answer_error(&self) -> Option<&AnswerError> {
        match &*self.kind {
            Kind::Answer { cause, .. } => Some(cause),
            _ => None,
        }
    }

    /// How the session's state differs from the state of this program.
    pub fn incompatible(&self) -> Option<&Incompatible> {
        match &*self.kind {
            Kind::Incompatible { cause, .. } => Some(cause),
            _ => None,
        }
    }

    /// The stored session is damaged: an entry cannot be read, or does not follow on those before it.
    /// A log that a [newer version](ReplayError::is_newer) wrote is not damaged.
    pub fn is_damaged(&self) -> bool {
        match &*self.kind {
            Kind::Replay { cause, .. } => !cause.is_newer(),
            Kind::Store(StoreError::Corrupt { .. } | StoreError::LostWrites { .. }) => true,
            _ => false,
        }
    }

    /// Why the session's log does not replay: it is damaged, or a newer version wrote it.
    pub fn replay_error(&self) -> Option<&ReplayError> {
        match &*self.kind {
            Kind::Replay { cause, .. } => Some(cause),
            _ => None,
        }
    }

    /// How the store failed.
    pub fn store_error(&self) -> Option<&StoreError> {
        match &*self.kind {
            Kind::Store(error) => Some(error),
            _ => None,
        }
    }

    /// Whether the error is about one stored session, so that others can be read.
    pub(crate) fn is_of_one_session(&self) -> bool {
        let of_key = |error: &StoreError| {
            matches!(error, StoreError::MissingKey { .. } | StoreError::WrongKey { .. })
        };
        matches!(*self.kind, Kind::Replay { .. })
            || self.is_damaged()
            || self.store_error().is_some_and(of_key)
    }
}

/// The error of a request about a session, for an error of the store.
pub(super) fn store_error(error: StoreError) -> SessionsError {
    match error {
        StoreError::Gone { session } => Kind::NotFound(session),
        StoreError::Busy { session, until } => Kind::Busy { session, until },
        StoreError::Pruned { session, first } => Kind::Pruned { session, first },
        other => Kind::Store(other),
    }
    .into()
}

pub(crate) fn read_error(session: &SessionId, error: ReadError) -> SessionsError {
    match error {
        ReadError::Store(error) => store_error(error),
        ReadError::Replay(cause) => Kind::Replay { session: session.clone(), cause }.into(),
    }
}

pub(super) fn not_given(session: &SessionId, error: NotGiven) -> SessionsError {
    match error {
        NotGiven::Refused(cause) => Kind::Answer { session: session.clone(), cause }.into(),
        NotGiven::Store(error) => store_error(error),
    }
}

impl From<Kind> for SessionsError {
    fn from(kind: Kind) -> Self {
        Self { kind: Box::new(kind) }
    }
}

impl From<InvalidSessionId> for SessionsError {
    fn from(error: InvalidSessionId) -> Self {
        Kind::InvalidSessionId(error).into()
    }
}

impl fmt::Display for SessionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl fmt::Debug for SessionsError {
    /// As it displays: an answer may be confidential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionsError").field(&format_args!("{}", self.kind)).finish()
    }
}

impl Error for SessionsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &*self.kind {
            Kind::Answer { cause, .. } => cause.source(),
            Kind::Incompatible { cause, .. } => cause.source(),
            Kind::Unwritable { cause, .. } => cause.source(),
            Kind::Replay { cause, .. } => cause.source(),
            Kind::Store(cause) => cause.source(),
            other => other.source(),
        }
    }
}
