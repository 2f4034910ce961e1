//! Why a call of another agent has no result.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::graph::Limit;
use crate::id::{AgentId, SessionId};
use crate::llm::Advice;
use crate::step::Failure;

use super::error::RunError;

/// The most sessions above a child.
pub(super) const MAX_DEPTH: u32 = 16;

/// Why [`Cx::call`](crate::Cx::call) has no result. `?` makes a step error of it, which a retry may fix
/// if the child failed with an error that a retry may fix. The retry starts another child.
#[derive(Debug)]
pub struct CallError {
    agent: AgentId,
    kind: Kind,
    advice: Advice,
}

#[derive(Debug)]
pub(super) enum Kind {
    Failed { session: SessionId, failure: Arc<Failure> },
    Exhausted { session: SessionId, limit: Limit },
    NotRun { session: SessionId, error: RunError },
    Refused(String),
    NotRecorded(String),
    KeyReused { key: String },
    InputChanged { key: String, session: SessionId },
    AnotherAgent { key: String, found: AgentId },
    TooDeep,
    NoStore { session: SessionId },
    Undecodable { session: SessionId, why: String },
    Stale,
    Unsupported,
}

impl CallError {
    pub(super) fn new(agent: &AgentId, kind: Kind) -> Self {
        let retry = match &kind {
            Kind::Failed { failure, .. } => failure.retryable,
            Kind::NotRun { error, .. } => error.store_error().is_some() || error.is_busy(),
            Kind::NotRecorded(_) => true,
            _ => false,
        };
        let advice = if retry { Advice::retry() } else { Advice::give_up() };
        Self { agent: agent.clone(), kind, advice }
    }

    /// The agent that was called.
    pub fn agent(&self) -> &AgentId {
        &self.agent
    }

    /// The child session, if there is one.
    pub fn session(&self) -> Option<&SessionId> {
        match &self.kind {
            Kind::Failed { session, .. }
            | Kind::Exhausted { session, .. }
            | Kind::NotRun { session, .. }
            | Kind::InputChanged { session, .. }
            | Kind::NoStore { session }
            | Kind::Undecodable { session, .. } => Some(session),
            _ => None,
        }
    }

    /// What the child failed with.
    pub fn failure(&self) -> Option<&Arc<Failure>> {
        match &self.kind {
            Kind::Failed { failure, .. } => Some(failure),
            _ => None,
        }
    }

    /// The part of its own budget that the child reached.
    pub fn limit(&self) -> Option<Limit> {
        match &self.kind {
            Kind::Exhausted { limit, .. } => Some(*limit),
            _ => None,
        }
    }

    /// Why the child did not begin or was not resumed.
    pub fn run_error(&self) -> Option<&RunError> {
        match &self.kind {
            Kind::NotRun { error, .. } => Some(error),
            _ => None,
        }
    }

    /// Too many sessions are above the child: agents that call each other never end.
    pub fn is_too_deep(&self) -> bool {
        matches!(self.kind, Kind::TooDeep)
    }

    /// The engine that runs the session cannot start the child, or not with what the call gives it.
    /// Nothing of it has begun.
    pub fn is_refused(&self) -> bool {
        matches!(self.kind, Kind::Refused(_))
    }

    /// The key was used twice in one attempt.
    pub fn is_key_reused(&self) -> bool {
        matches!(self.kind, Kind::KeyReused { .. })
    }

    /// The attempt gave another input than the one with which the child was started.
    pub fn is_input_changed(&self) -> bool {
        matches!(self.kind, Kind::InputChanged { .. })
    }

    /// The child asked a question, and the parent has no store to wait in.
    pub fn is_no_store(&self) -> bool {
        matches!(self.kind, Kind::NoStore { .. })
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agent = &self.agent;
        match &self.kind {
            Kind::Failed { session, failure } => {
                write!(f, "agent `{agent}` failed in session `{session:#}`: {failure}")
            }
            Kind::Exhausted { session, limit } => {
                write!(f, "agent `{agent}` used up its budget of {limit} in session `{session:#}`")
            }
            Kind::NotRun { session, error } => {
                write!(f, "agent `{agent}` could not run session `{session:#}`: {error}")
            }
            Kind::Refused(why) => {
                write!(f, "agent `{agent}` cannot be called on this engine: {why}")
            }
            Kind::NotRecorded(why) => {
                write!(f, "the call of agent `{agent}` could not be recorded: {why}")
            }
            Kind::KeyReused { key } => write!(
                f,
                "the key `{key}` of a call is used twice in one attempt (give every call of a step \
                 its own: `.key(..)`)"
            ),
            Kind::InputChanged { key, session } => write!(
                f,
                "the call `{key}` has another input than session `{session:#}` was started with (make \
                 the input in `cx.once(..)`, so that it stays the same, or use another key)"
            ),
            Kind::AnotherAgent { key, found } => write!(
                f,
                "the call `{key}` is of agent `{agent}`, but was begun with agent `{found}` (use \
                 another key)"
            ),
            Kind::TooDeep => write!(
                f,
                "agent `{agent}` would run below {MAX_DEPTH} others (agents that call each other need \
                 a call that ends this)"
            ),
            Kind::NoStore { session } => write!(
                f,
                "agent `{agent}` waits for an answer in session `{session:#}`, and the agent that \
                 called it has no store to wait in (add `.store(..)` to that agent)"
            ),
            Kind::Undecodable { session, why } => {
                write!(f, "the result of agent `{agent}` in session `{session:#}`: {why}")
            }
            Kind::Stale => write!(
                f,
                "agent `{agent}` was called by a task of a finished step (await what a step spawns)"
            ),
            Kind::Unsupported => {
                write!(f, "agent `{agent}` cannot be called here (run the step in a loop)")
            }
        }
    }
}

impl Error for CallError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.advice)
    }
}
