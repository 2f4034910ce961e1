//! Why a run could not begin.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::clock::UtcMillis;
use crate::compat::Incompatible;
use crate::id::{AgentId, InvalidSessionId, SessionId};
use crate::inbox::{AnswerError, NotGiven};
use crate::journal::Broken;
use crate::session::ReplayError;
use crate::store::{Phase, StoreError};

/// Why a run failed to start or to resume a session. The session is unchanged.
///
/// A step that fails is not a `RunError`: it settles the run as
/// [`Outcome::Failed`](crate::Outcome::Failed), which keeps the session.
///
/// The message includes the cause, and [`source`](std::error::Error::source) returns what that cause
/// leaves out of its own message.
pub struct RunError {
    kind: Box<Kind>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Kind {
    #[error(transparent)]
    InvalidSessionId(#[from] InvalidSessionId),
    #[error(
        "no store in which to find session `{0:#}` (resume the outcome itself: \
         `agent.resume(&waiting, answers, slots)`)"
    )]
    NoStore(SessionId),
    #[error(
        "session `{0:#}` is not at rest in this outcome (a run advances it; it settled in another \
         outcome, so resume that one; or a reducer or a route panicked, which lost its state)"
    )]
    NotAtRest(SessionId),
    #[error("session `{session:#}`: {cause}")]
    Answer { session: SessionId, cause: AnswerError },
    #[error(
        "the runtime slots are of type `{found}`, but agent `{agent}` takes `{expected}` (the \
         compiler checks `agent.resume(&waiting, ..)`)"
    )]
    WrongSlots { agent: String, expected: &'static str, found: &'static str },
    #[error("no session `{0:#}` in the agent's store")]
    NotFound(SessionId),
    #[error(
        "session `{session:#}` belongs to agent `{found}`, not to `{expected}` (resume it with the \
         agent that began it)"
    )]
    WrongAgent { session: SessionId, expected: AgentId, found: AgentId },
    #[error(
        "session `{0:#}` was not started by the step that calls it (it was removed and made again, or \
         has the id of a child by chance)"
    )]
    NotAChild(SessionId),
    #[error("session `{0:#}` has ended (start its next turn: `agent.run(..)`)")]
    NotWaiting(SessionId),
    #[error(
        "session `{session:#}` waits for answers to {} (resume it with them, or start the next turn \
         with `.withdraw_questions()`)",
        list(open)
    )]
    OpenInterrupts { session: SessionId, open: Vec<String> },
    #[error(
        "session `{0:#}` waits for a timer or another agent (resume it when that is due; its next \
         input comes after)"
    )]
    Waiting(SessionId),
    #[error(
        "session `{session:#}` has an unfinished turn ({phase:?}{}; resume it before its next input)",
        in_doubt.as_ref().map(|key| format!(", and its effect `{key}` is in doubt")).unwrap_or_default()
    )]
    Unsettled { session: SessionId, phase: Phase, in_doubt: Option<String> },
    #[error(
        "session `{session:#}` is held by another run{}{} (choose how to handle this with \
         `.on_busy(..)`)",
        if *answers_recorded { ", which applies the answers" } else { "" },
        until.map(|until| format!("; its lease expires at {until}, unless it is renewed")).unwrap_or_default()
    )]
    Busy { session: SessionId, until: Option<UtcMillis>, answers_recorded: bool },
    #[error("session `{session:#}` has another input with the id `{id}` (the first input is kept)")]
    InputConflict { session: SessionId, id: String },
    #[error(
        "session `{session:#}` has skipped the input `{id}`: {why} (send it again under another id, as \
         the state of the program that runs the session takes it)"
    )]
    InputSkipped { session: SessionId, id: String, why: String },
    #[error(
        "the loop `{harness}` has no step `{step}` for a breakpoint{}",
        near.as_ref().map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default()
    )]
    UnknownStep { step: String, harness: String, near: Option<String> },
    #[error(transparent)]
    Incompatible(#[from] Incompatible),
    #[error("{0}")]
    Store(StoreError),
    #[error("{0}")]
    NotWritten(Arc<StoreError>),
    #[error("session `{session:#}`: {cause}")]
    Replay { session: SessionId, cause: ReplayError },
    #[error("failed to begin the run: {0}")]
    NotBegun(String),
    #[error("failed to encode the state that the session begins with: {0}")]
    InputNotEncodable(String),
    #[error("failed to fold the input into the state: {0}")]
    InputRefused(String),
    #[error("failed to fold the input into the state: its code panicked: {0}")]
    InputPanicked(String),
    #[error("the runtime shut down before the run settled")]
    RuntimeGone,
    #[error("the run panicked outside of any step: {0} (report this fault of the framework)")]
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

    /// The outcome no longer holds the session: a run advances it, or it settled in another outcome.
    pub fn is_not_at_rest(&self) -> bool {
        matches!(*self.kind, Kind::NotAtRest(_))
    }

    /// Why an answer was refused.
    pub fn answer_error(&self) -> Option<&AnswerError> {
        match &*self.kind {
            Kind::Answer { cause, .. } => Some(cause),
            _ => None,
        }
    }

    /// The store has no such session.
    pub fn is_not_found(&self) -> bool {
        // One that was removed while the run looked for it is not there either.
        matches!(*self.kind, Kind::NotFound(_) | Kind::Store(StoreError::Gone { .. }))
    }

    /// The session belongs to another agent.
    pub fn is_wrong_agent(&self) -> bool {
        matches!(*self.kind, Kind::WrongAgent { .. })
    }

    /// The session has ended: there is nothing to resume.
    pub fn is_not_waiting(&self) -> bool {
        matches!(*self.kind, Kind::NotWaiting(_))
    }

    /// The session waits for answers, and takes no input before it has them.
    pub fn is_pending_interrupt(&self) -> bool {
        matches!(*self.kind, Kind::OpenInterrupts { .. })
    }

    /// The session waits for a timer or another agent.
    pub fn is_waiting(&self) -> bool {
        matches!(*self.kind, Kind::Waiting(_))
    }

    /// The session's turn has not ended: it crashed, stopped, failed or reached a budget. Resume it.
    pub fn is_unsettled(&self) -> bool {
        matches!(*self.kind, Kind::Unsettled { .. })
    }

    /// Another run holds the session.
    pub fn is_busy(&self) -> bool {
        matches!(*self.kind, Kind::Busy { .. })
    }

    /// Another run holds the session, and applies the answers of this request.
    pub fn answers_recorded(&self) -> bool {
        matches!(*self.kind, Kind::Busy { answers_recorded: true, .. })
    }

    /// A reducer [refused](crate::state::FieldOps::refuse) the input.
    pub fn is_input_refused(&self) -> bool {
        matches!(*self.kind, Kind::InputRefused(_))
    }

    /// The session has another input with the same id.
    pub fn is_input_conflict(&self) -> bool {
        matches!(*self.kind, Kind::InputConflict { .. })
    }

    /// The queued input cannot be folded into the session's state, and begins no turn.
    pub fn is_input_skipped(&self) -> bool {
        matches!(*self.kind, Kind::InputSkipped { .. })
    }

    /// A breakpoint names a step that the loop does not have.
    pub fn is_unknown_step(&self) -> bool {
        matches!(*self.kind, Kind::UnknownStep { .. })
    }

    /// How the loop or the state differs from what the session depends on.
    pub fn incompatible(&self) -> Option<&Incompatible> {
        match &*self.kind {
            Kind::Incompatible(why) => Some(why),
            _ => None,
        }
    }

    /// How the store failed.
    pub fn store_error(&self) -> Option<&StoreError> {
        match &*self.kind {
            Kind::Store(error) => Some(error),
            Kind::NotWritten(error) => Some(error),
            _ => None,
        }
    }

    /// Why the session's log does not replay: it is damaged, or a newer version wrote it.
    pub fn replay_error(&self) -> Option<&ReplayError> {
        match &*self.kind {
            Kind::Replay { cause, .. } => Some(cause),
            _ => None,
        }
    }

    /// The runtime slots have another type than the agent's.
    pub fn is_wrong_slots(&self) -> bool {
        matches!(*self.kind, Kind::WrongSlots { .. })
    }
}

impl Kind {
    /// Answers that were refused, or that the store failed to take.
    pub(crate) fn not_given(session: &SessionId, error: NotGiven) -> Self {
        match error {
            NotGiven::Refused(cause) => Self::Answer { session: session.clone(), cause },
            NotGiven::Store(error) => Self::Store(error),
        }
    }

    /// The first entries of a run failed to be recorded.
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
    /// As it displays: an answer may be confidential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RunError").field(&format_args!("{}", self.kind)).finish()
    }
}

impl Error for RunError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &*self.kind {
            Kind::Answer { cause, .. } => cause.source(),
            Kind::Store(cause) => cause.source(),
            Kind::NotWritten(cause) => cause.source(),
            Kind::Replay { cause, .. } => cause.source(),
            other => other.source(),
        }
    }
}
