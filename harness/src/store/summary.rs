//! What a store knows of a session without reading its log.

use serde::{Deserialize, Serialize};

use crate::clock::UtcMillis;
use crate::id::{AgentId, InterruptId};

use super::message::InboxSeq;

/// What a store knows of a session without reading its log. It holds no payload: no state, no
/// question, no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSummary {
    /// The agent of the session.
    pub agent: AgentId,
    /// The phase of the session.
    pub phase: Phase,
    /// The step the session is at.
    pub step: String,
    /// When the session has to be resumed though no message comes: a timer is due then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<UtcMillis>,
    /// The last message that the holder has processed.
    #[serde(default)]
    pub inbox: InboxSeq,
}

impl SessionSummary {
    /// A session of this agent that is at `step`, without a due time and without processed messages.
    #[must_use]
    pub fn new(agent: AgentId, phase: Phase, step: impl Into<String>) -> Self {
        Self { agent, phase, step: step.into(), due: None, inbox: InboxSeq(0) }
    }
}

/// The phase of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Phase {
    /// A run advances it, or the process of that run has ended.
    Running,
    /// Open interrupts wait for answers.
    Interrupted,
    /// It waits for a timer or another agent.
    Waiting,
    /// Its turn has ended.
    Ended,
    /// Its run was stopped, cancelled or dropped.
    Stopped,
    /// Its turn reached a budget.
    Exhausted,
    /// Its turn failed.
    Failed,
}

/// An open interrupt, as far as a store knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenInterrupt {
    /// Its id, unique in its session.
    pub id: InterruptId,
    /// When it was opened.
    pub since: UtcMillis,
    /// When it can no longer be answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<UtcMillis>,
}

impl OpenInterrupt {
    /// An interrupt that does not expire.
    #[must_use]
    pub fn new(id: impl Into<InterruptId>, since: UtcMillis) -> Self {
        Self { id: id.into(), since, expires: None }
    }
}
