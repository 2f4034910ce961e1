//! Why nothing could be learnt of a session, or done to it.

use std::fmt;

use crate::clock::UtcMillis;
use crate::compat::Incompatible;
use crate::id::{AgentId, InvalidSessionId, Seq, SessionId};
use crate::inbox::{AnswerError, NotGiven};
use crate::journal::ReadError;
use crate::session::{EntryError, ReplayError};
use crate::store::StoreError;

/// Why something could not be read of a session, or done to it. Nothing has changed then, unless
/// the [store](Self::store_error) says that it does not know.
pub struct SessionsError {
    kind: Box<Kind>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Kind {
    #[error(transparent)]
    InvalidSessionId(#[from] InvalidSessionId),
    #[error(
        "the agent has no store to find session `{0}` in (give it the one that its sessions are \
         in: `.store(..)`)"
    )]
    NoStore(SessionId),
    #[error("there is no session `{0}` in the store")]
    NotFound(SessionId),
    #[error("session `{0}` exists already (fork into an id that is not taken)")]
    Exists(SessionId),
    #[error(
        "session `{session}` is one of agent `{found}`, not of `{expected}` (ask the agent that \
         began it)"
    )]
    WrongAgent { session: SessionId, expected: AgentId, found: AgentId },
    #[error(
        "session `{session}` is held by a run (its lease expires at {until}; ask the run to stop, \
         and try again once it has settled)"
    )]
    Busy { session: SessionId, until: UtcMillis },
    #[error(
        "session `{session}` is kept from entry {first} on; those before were pruned (ask for \
         {first} or later)"
    )]
    Pruned { session: SessionId, first: Seq },
    #[error("session `{session}` has no entry {seq} (its entries go from 1 to {head})")]
    NoSuchEntry { session: SessionId, seq: Seq, head: Seq },
    #[error(
        "no step's result ends with entry {seq} of session `{session}` ({})",
        match nearest {
            Some(nearest) => format!("the nearest before at which one does is {nearest}"),
            None => "none of those kept before it does".to_owned(),
        }
    )]
    NotABoundary { session: SessionId, seq: Seq, nearest: Option<Seq> },
    #[error("session `{session}`: {source}")]
    Answer { session: SessionId, source: AnswerError },
    #[error("session `{session}`: {source}")]
    Incompatible { session: SessionId, source: Incompatible },
    #[error("what session `{session}` adds up to cannot be written anew: {source}")]
    Unwritable { session: SessionId, source: EntryError },
    #[error("session `{session}`: {source}")]
    Replay { session: SessionId, source: ReplayError },
    #[error("the store of the sessions: {0}")]
    Store(#[source] StoreError),
}

impl SessionsError {
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

    /// The session is one of another agent.
    pub fn is_wrong_agent(&self) -> bool {
        matches!(*self.kind, Kind::WrongAgent { .. })
    }

    /// A run holds the session.
    pub fn is_busy(&self) -> bool {
        matches!(*self.kind, Kind::Busy { .. })
    }

    /// The session that a fork was to become exists already.
    pub fn is_exists(&self) -> bool {
        matches!(*self.kind, Kind::Exists(_))
    }

    /// Entries that were asked for were pruned: the first that is kept.
    pub fn pruned(&self) -> Option<Seq> {
        match *self.kind {
            Kind::Pruned { first, .. } => Some(first),
            _ => None,
        }
    }

    /// Entries that were asked for were pruned; [`pruned`](Self::pruned) says which are kept.
    pub fn is_pruned(&self) -> bool {
        self.pruned().is_some()
    }

    /// The session has no entry of that number.
    pub fn is_no_such_entry(&self) -> bool {
        matches!(*self.kind, Kind::NoSuchEntry { .. })
    }

    /// No step's result ends with the entry that was named, so nothing can be forked there.
    pub fn is_not_a_boundary(&self) -> bool {
        matches!(*self.kind, Kind::NotABoundary { .. })
    }

    /// After [`is_not_a_boundary`](Self::is_not_a_boundary): the nearest entry before with which a
    /// step's result ends, if it is kept.
    pub fn nearest_boundary(&self) -> Option<Seq> {
        match *self.kind {
            Kind::NotABoundary { nearest, .. } => nearest,
            _ => None,
        }
    }

    /// An answer was refused, and why.
    pub fn answer_error(&self) -> Option<&AnswerError> {
        match &*self.kind {
            Kind::Answer { source, .. } => Some(source),
            _ => None,
        }
    }

    /// The session's state is not one of this program, and why.
    pub fn incompatible(&self) -> Option<&Incompatible> {
        match &*self.kind {
            Kind::Incompatible { source, .. } => Some(source),
            _ => None,
        }
    }

    /// What is stored of the session is damaged: an entry cannot be read, or does not add up with
    /// those before. Not so if a [newer version](ReplayError::is_newer) wrote it.
    pub fn is_damaged(&self) -> bool {
        match &*self.kind {
            Kind::Replay { source, .. } => !source.is_newer(),
            Kind::Store(StoreError::Corrupt { .. } | StoreError::LostWrites { .. }) => true,
            _ => false,
        }
    }

    /// The session's log does not add up, or a newer version wrote it.
    pub fn replay_error(&self) -> Option<&ReplayError> {
        match &*self.kind {
            Kind::Replay { source, .. } => Some(source),
            _ => None,
        }
    }

    /// The store failed, and how.
    pub fn store_error(&self) -> Option<&StoreError> {
        match &*self.kind {
            Kind::Store(error) => Some(error),
            _ => None,
        }
    }

    /// Whether the error is about what is stored of this one session, so that others can be read.
    pub(super) fn is_of_one_session(&self) -> bool {
        matches!(*self.kind, Kind::Replay { .. }) || self.is_damaged()
    }
}

/// What an error that a store gives means to who asked for a session.
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
        ReadError::Replay(source) => Kind::Replay { session: session.clone(), source }.into(),
    }
}

pub(super) fn not_given(session: &SessionId, error: NotGiven) -> SessionsError {
    match error {
        NotGiven::Refused(source) => Kind::Answer { session: session.clone(), source }.into(),
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
    /// As it reads: what a question was answered with is not for whoever logs the error.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionsError").field(&format_args!("{}", self.kind)).finish()
    }
}

impl std::error::Error for SessionsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&*self.kind)
    }
}
