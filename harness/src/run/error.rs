use std::fmt;

use crate::id::{InterruptId, InvalidSessionId, SessionId};

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
    #[error("session `{session}` asks no question `{id}` (it waits on {})", list(open))]
    UnknownInterrupt { session: SessionId, id: InterruptId, open: Vec<String> },
    #[error(
        "question `{id}` of session `{session}` is answered already, differently (the first \
         answer holds)"
    )]
    Conflict { session: SessionId, id: InterruptId },
    #[error("the answer to `{id}` is one to the question `{given}`, but `{asked}` was asked")]
    AnotherQuestion { id: InterruptId, given: String, asked: String },
    #[error("the answer to `{asked}` (`{id}`) does not fit: {why} (see its `answer_schema`)")]
    IllTypedAnswer { id: InterruptId, asked: String, why: String },
    #[error(
        "the runtime slots given are of type `{found}`, but agent `{agent}` takes `{expected}` \
         (`agent.resume(&waiting, ..)` has the compiler check this)"
    )]
    WrongSlots { agent: String, expected: &'static str, found: &'static str },
    #[error("the input could not be reduced into the state: a reducer panicked: {0}")]
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

    /// An answer names a question that the session does not ask.
    pub fn is_unknown_interrupt(&self) -> bool {
        matches!(*self.kind, Kind::UnknownInterrupt { .. })
    }

    /// Two different answers to one question.
    pub fn is_conflict(&self) -> bool {
        matches!(*self.kind, Kind::Conflict { .. })
    }

    /// An answer does not fit its question: it has another type, or belongs to another question.
    pub fn is_wrong_answer(&self) -> bool {
        matches!(*self.kind, Kind::AnotherQuestion { .. } | Kind::IllTypedAnswer { .. })
    }

    /// The runtime slots have another type than the agent's.
    pub fn is_wrong_slots(&self) -> bool {
        matches!(*self.kind, Kind::WrongSlots { .. })
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
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RunError").field(&self.kind).finish()
    }
}

impl std::error::Error for RunError {}
