//! What a store knows of a session without reading its log.

use serde::{Deserialize, Serialize};

use crate::clock::UtcMillis;
use crate::id::{AgentId, InterruptId};

/// What a store knows of a session without reading its log. Holds nothing that was said: no state,
/// no question, no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The agent whose session it is.
    pub agent: AgentId,
    /// Where in its life it is.
    pub phase: Phase,
    /// The step it rests at.
    pub step: String,
    /// When it needs somebody though nobody writes to it: a timer is due then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<UtcMillis>,
    /// How many letters its holder has taken into the log.
    #[serde(default)]
    pub mail: super::Mail,
}

/// Where in its life a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Phase {
    /// A run advances it; or the process of that run is gone.
    Running,
    /// Questions wait for answers.
    Interrupted,
    /// It waits for a timer or another agent.
    Waiting,
    /// Its turn came to its end.
    Ended,
    /// Its run was stopped, cancelled or dropped.
    Stopped,
    /// Its turn reached a budget.
    Exhausted,
    /// Its turn failed.
    Failed,
}

/// A question that waits, as far as the index knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// Names it; unique in its session.
    pub id: InterruptId,
    /// When it was asked.
    pub since: UtcMillis,
    /// When it can no longer be answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<UtcMillis>,
}

/// What a store survives and how much it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarantees {
    /// What is appended, flushed or not, survives the end of the process that wrote it, and can be
    /// read by others.
    pub process_end: bool,
    /// What is flushed survives a loss of power.
    pub power_loss: bool,
    /// What is flushed survives the loss of the machine.
    pub failover: bool,
    /// The most bytes of entries in one batch; `None` if only memory bounds it.
    pub max_batch: Option<u64>,
    /// Leases are timed by a clock of the store itself, which its users do not have to agree with.
    pub own_clock: bool,
}
