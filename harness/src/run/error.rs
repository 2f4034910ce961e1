use std::fmt;
use std::sync::Arc;

use crate::compat::Incompatible;
use crate::id::{AgentId, InvalidSessionId, SessionId};
use crate::inbox::{AnswerError, NotGiven};
use crate::journal::Broken;
use crate::session::ReplayError;
use crate::store::{Phase, StoreError};

/// Why a run could not be started or a session not be resumed. Nothing has changed then: the
/// session is where it was.
///
/// A step that fails is no `RunError`: it settles the run as
/// [`Outcome::Failed`](crate::Outcome::Failed), which keeps the session.
pub struct RunError {
    kind: Box<Kind>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Kind {
    #[error(transparent)]
    InvalidSessionId(#[from] InvalidSessionId),
    #[error(
        "the agent has no store to find session `{0}` in (resume the outcome itself: \
         `agent.resume(&waiting, answers, slots)`)"
    )]
    NoStore(SessionId),
    #[error(
        "session `{0}` is not at rest in this outcome: a run advances it, it has settled in another \
         outcome (resume that one), or its state was lost in a panic of a reducer or a route"
    )]
    NotAtRest(SessionId),
    #[error("session `{session}`: {source}")]
    Answer { session: SessionId, source: AnswerError },
    #[error(
        "the runtime slots given are of type `{found}`, but agent `{agent}` takes `{expected}` \
         (`agent.resume(&waiting, ..)` has the compiler check this)"
    )]
    WrongSlots { agent: String, expected: &'static str, found: &'static str },
    #[error("there is no session `{0}` in the agent's store")]
    NotFound(SessionId),
    #[error(
        "session `{session}` is one of agent `{found}`, not of `{expected}` (resume it with the \
         agent that began it)"
    )]
    WrongAgent { session: SessionId, expected: AgentId, found: AgentId },
    #[error(
        "session `{0}` has ended and waits for nothing (give it its next input: `agent.run(..)`)"
    )]
    NotWaiting(SessionId),
    #[error(
        "session `{session}` waits for answers to {} (resume it with them, or start the next turn \
         `.withdraw_questions()`)",
        list(open)
    )]
    PendingInterrupt { session: SessionId, open: Vec<String> },
    #[error("session `{0}` waits for a timer or another agent (it goes on by itself)")]
    Waiting(SessionId),
    #[error(
        "session `{session}` has an unfinished turn ({phase:?}): resume it before the next input"
    )]
    Unsettled { session: SessionId, phase: Phase },
    #[error(
        "session `{session}` is held by another run{} (see `OnBusy` for what to do about it)",
        if *answers_recorded { ", which goes on with the answers" } else { "" }
    )]
    Busy { session: SessionId, answers_recorded: bool },
    #[error(
        "session `{session}` has a turn that has not ended: the input is left, and taken as the \
         next turn by the run that ends this one"
    )]
    Queued { session: SessionId },
    #[error("session `{session}` was given another input under the id `{id}`")]
    InputConflict { session: SessionId, id: String },
    #[error(transparent)]
    Incompatible(#[from] Incompatible),
    #[error("the session's store: {0}")]
    Store(#[source] StoreError),
    #[error("the session's store: {0}")]
    NotWritten(#[source] Arc<StoreError>),
    #[error("session `{session}`: {source}")]
    Replay { session: SessionId, source: ReplayError },
    #[error("the run could not begin: {0}")]
    NotBegun(String),
    #[error("what the session begins with does not go through JSON: {0}")]
    InputNotEncodable(String),
    #[error("the input could not be reduced into a state: the state's own code panicked: {0}")]
    InputPanicked(String),
    #[error("the runtime shut down before the run settled")]
    RuntimeGone,
    #[error("the run panicked outside of any step (this is a fault of the framework): {0}")]
    Panicked(String),
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => format!("`{}`", names.join("`, `")),
    }
}

impl RunError {
    /// The session id is empty or too long.
    pub fn is_invalid_session_id(&self) -> bool {
        matches!(*self.kind, Kind::InvalidSessionId(_))
    }

    /// The agent has no store to find a session by its id.
    pub fn is_no_store(&self) -> bool {
        matches!(*self.kind, Kind::NoStore(_))
    }

    /// A run advances the session, or it has moved on.
    pub fn is_not_at_rest(&self) -> bool {
        matches!(*self.kind, Kind::NotAtRest(_))
    }

    /// An answer was refused, and why.
    pub fn answer_error(&self) -> Option<&AnswerError> {
        match &*self.kind {
            Kind::Answer { source, .. } => Some(source),
            _ => None,
        }
    }

    /// The store has no such session.
    pub fn is_not_found(&self) -> bool {
        matches!(*self.kind, Kind::NotFound(_))
    }

    /// The session is one of another agent.
    pub fn is_wrong_agent(&self) -> bool {
        matches!(*self.kind, Kind::WrongAgent { .. })
    }

    /// The session has ended: there is nothing to resume.
    pub fn is_not_waiting(&self) -> bool {
        matches!(*self.kind, Kind::NotWaiting(_))
    }

    /// The session waits for answers, and takes no input before they are there.
    pub fn is_pending_interrupt(&self) -> bool {
        matches!(*self.kind, Kind::PendingInterrupt { .. })
    }

    /// The session waits for a timer or another agent.
    pub fn is_waiting(&self) -> bool {
        matches!(*self.kind, Kind::Waiting(_))
    }

    /// The session's turn is not over: it crashed, was stopped, failed or reached a budget. Resume
    /// it.
    pub fn is_unsettled(&self) -> bool {
        matches!(*self.kind, Kind::Unsettled { .. })
    }

    /// Another run holds the session.
    pub fn is_busy(&self) -> bool {
        matches!(*self.kind, Kind::Busy { .. } | Kind::Queued { .. })
    }

    /// Another run holds the session, and goes on with the answers that were given.
    pub fn answers_recorded(&self) -> bool {
        matches!(*self.kind, Kind::Busy { answers_recorded: true, .. })
    }

    /// The session has a turn that has not ended: the input is left, and taken as the next turn by the
    /// run that ends this one.
    pub fn is_queued(&self) -> bool {
        matches!(*self.kind, Kind::Queued { .. })
    }

    /// Another input was given under the same id.
    pub fn is_input_conflict(&self) -> bool {
        matches!(*self.kind, Kind::InputConflict { .. })
    }

    /// The loop or the state changed in what the session depends on, and in what.
    pub fn incompatible(&self) -> Option<&Incompatible> {
        match &*self.kind {
            Kind::Incompatible(why) => Some(why),
            _ => None,
        }
    }

    /// The store failed, and how.
    pub fn store_error(&self) -> Option<&StoreError> {
        match &*self.kind {
            Kind::Store(error) => Some(error),
            Kind::NotWritten(error) => Some(error),
            _ => None,
        }
    }

    /// The session's log does not add up, or a newer version wrote it.
    pub fn replay_error(&self) -> Option<&ReplayError> {
        match &*self.kind {
            Kind::Replay { source, .. } => Some(source),
            _ => None,
        }
    }

    /// The runtime slots have another type than the agent's.
    pub fn is_wrong_slots(&self) -> bool {
        matches!(*self.kind, Kind::WrongSlots { .. })
    }
}

impl Kind {
    /// Answers were not given.
    pub(crate) fn not_given(session: &SessionId, error: NotGiven) -> Self {
        match error {
            NotGiven::Refused(source) => Self::Answer { session: session.clone(), source },
            NotGiven::Store(error) => Self::Store(error),
        }
    }

    /// The first entries of a run could not be recorded.
    pub(crate) fn unrecorded(broken: Broken) -> Self {
        match broken {
            Broken::Store(error) => Self::NotWritten(error),
            other => Self::NotBegun(other.to_error().source().to_string()),
        }
    }
}

impl From<Kind> for RunError {
    fn from(kind: Kind) -> Self {
        Self { kind: Box::new(kind) }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl fmt::Debug for RunError {
    /// As it reads: what a question was answered with is not for whoever logs the error.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RunError").field(&format_args!("{}", self.kind)).finish()
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&*self.kind)
    }
}
