//! Lists of sessions and of open interrupts.

use crate::clock::UtcMillis;
use crate::id::{AgentId, Seq, SessionId};

use super::rules;
use super::summary::{OpenInterrupt, Phase, SessionSummary};

/// What to list. All conditions must hold; the default lists all sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filter {
    /// One row for each open interrupt instead of one for each session.
    pub interrupts: bool,
    /// Only sessions of this agent.
    pub agent: Option<AgentId>,
    /// Only sessions in this phase.
    pub phase: Option<Phase>,
}

impl Filter {
    /// All sessions.
    #[must_use]
    pub fn sessions() -> Self {
        Self::default()
    }

    /// All open interrupts.
    #[must_use]
    pub fn interrupts() -> Self {
        Self { interrupts: true, ..Self::default() }
    }

    /// Only those of this agent.
    #[must_use]
    pub fn agent(mut self, agent: AgentId) -> Self {
        self.agent = Some(agent);
        self
    }

    /// Only those in this phase.
    #[must_use]
    pub fn phase(mut self, phase: Phase) -> Self {
        self.phase = Some(phase);
        self
    }

    /// Whether a session with this summary is listed.
    #[must_use]
    pub fn admits(&self, summary: &SessionSummary) -> bool {
        self.agent.as_ref().is_none_or(|agent| *agent == summary.agent)
            && self.phase.is_none_or(|phase| phase == summary.phase)
    }
}

/// A page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// The rows, in the order of their keys.
    pub rows: Vec<Row>,
    /// The key to give as `after` for the next page; `None` on the last page.
    pub next: Option<Vec<u8>>,
}

impl Listing {
    /// A page of rows, and whether more rows come after it.
    #[must_use]
    pub fn new(rows: Vec<Row>, more: bool) -> Self {
        let next = if more { rows.last().map(Row::key) } else { None };
        Self { rows, next }
    }
}

/// A session, or one of its open interrupts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// The session.
    pub session: SessionId,
    /// Its summary.
    pub summary: SessionSummary,
    /// The seq of its last entry.
    pub head: Seq,
    /// The writer's time of its first batch.
    pub created: UtcMillis,
    /// The writer's time of its last batch.
    pub updated: UtcMillis,
    /// The interrupt, in a list of interrupts.
    pub interrupt: Option<OpenInterrupt>,
}

impl Row {
    /// A row of a list of sessions.
    #[must_use]
    pub fn new(session: SessionId, summary: SessionSummary, head: Seq) -> Self {
        let (created, updated) = (UtcMillis::default(), UtcMillis::default());
        Self { session, summary, head, created, updated, interrupt: None }
    }

    /// The place of the row in its list, as [`rules::list_key`] has it.
    #[must_use]
    pub fn key(&self) -> Vec<u8> {
        rules::list_key(&self.session, self.interrupt.as_ref().map(|interrupt| &interrupt.id))
    }
}
