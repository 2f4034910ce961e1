//! What a log adds up to.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::clock::UtcMillis;
use crate::id::{AgentId, Position, RunId};
use crate::llm::Spend;
use crate::state::Schema;
use crate::step::{Failure, Interrupt};
use crate::store::{InboxSeq, Phase};

use super::digest::{Digest, Salt};
use super::entry::{Fingerprint, HowEnded, Origin, Resolution, Settled};

/// A session as its log tells it: the state as JSON, steps by name. The body of a snapshot, too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Saved {
    #[serde(rename = "v")]
    pub(crate) format: u32,
    pub(crate) agent: AgentId,
    pub(crate) salt: Salt,
    pub(crate) graph: Fingerprint,
    pub(crate) schema: Schema,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<Origin>,
    pub(crate) state: Value,
    pub(crate) phase: Phase,
    pub(crate) cursor: SavedCursor,
    /// Questions of the position at work, answered ones among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) questions: Vec<SavedQuestion>,
    #[serde(default)]
    pub(crate) memory: SavedMemory,
    /// Effects whose scope is the session.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) session_effects: BTreeMap<String, Mark>,
    /// Where to go on after the last steps have run for a turn that is not over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parked: Option<Box<SavedParked>>,
    /// How many turns have begun.
    pub(crate) turn: u64,
    /// The last run that began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<RunId>,
    /// The key of the turn's input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<String>,
    /// What this turn has spent.
    pub(crate) spent: Spend,
    /// What all turns have spent.
    pub(crate) total: Spend,
    /// How long this turn has run, waiting not counted, in milliseconds.
    #[serde(default)]
    pub(crate) active_ms: u64,
    /// How the last run settled, while none is at work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) settled: Option<Box<Settled>>,
    /// How many runs took over at this position from ones that did not settle.
    #[serde(default)]
    pub(crate) recovered: u32,
    /// The letters taken so far.
    #[serde(default)]
    pub(crate) mail: InboxSeq,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<Map<String, Value>>,
}

/// Where a session's loop stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedCursor {
    /// The step that is entered next, or that is at work.
    pub(crate) step: Arc<str>,
    pub(crate) position: Position,
    /// The highest position given so far.
    pub(crate) last: Position,
    /// How often the step is known to have been tried at this position.
    #[serde(default)]
    pub(crate) attempt: u32,
    /// How many of those were retries, since the last commit or resume.
    #[serde(default)]
    pub(crate) retries: u32,
    /// How many steps this turn has committed.
    pub(crate) steps: u64,
    /// How often each step was entered in this turn.
    pub(crate) visits: BTreeMap<Arc<str>, u32>,
    /// The failure that led here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<Box<Failure>>,
    /// Set while the last steps run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) finishing: Option<SavedFinishing>,
}

impl SavedCursor {
    /// Before the first step of the first turn.
    pub(super) fn not_entered() -> Self {
        Self {
            step: Arc::from(""),
            position: Position(0),
            last: Position(0),
            attempt: 0,
            retries: 0,
            steps: 0,
            visits: BTreeMap::new(),
            failure: None,
            finishing: None,
        }
    }

    /// Begins a turn. Positions go on: they are the session's.
    pub(super) fn restart(&mut self, start: Arc<str>) {
        *self = Self { last: self.last, ..Self::not_entered() };
        self.enter(start);
    }

    /// Moves on to a new entry into `step`.
    pub(super) fn enter(&mut self, step: Arc<str>) {
        match self.visits.get_mut(&*step) {
            Some(visits) => *visits = visits.saturating_add(1),
            None => {
                self.visits.insert(Arc::clone(&step), 1);
            }
        }
        self.step = step;
        self.last.0 = self.last.0.saturating_add(1);
        self.position = self.last;
        self.attempt = 0;
        self.retries = 0;
        self.failure = None;
    }

    /// A failure says how often the step was tried, the last time included.
    pub(super) fn count_attempts(&mut self, failure: Option<&Failure>) {
        if let Some(failure) = failure
            && failure.position == self.position
        {
            self.attempt = self.attempt.max(failure.attempts);
        }
    }

    pub(super) fn rename(&mut self, renamed: &BTreeMap<Arc<str>, Arc<str>>) {
        if let Some(new) = renamed.get(&self.step) {
            self.step = Arc::clone(new);
        }
        for (old, count) in std::mem::take(&mut self.visits) {
            let name = renamed.get(&old).cloned().unwrap_or(old);
            let visits = self.visits.entry(name).or_default();
            *visits = visits.saturating_add(count);
        }
    }
}

/// How a turn will have ended once the last steps are through.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedFinishing {
    pub(crate) ending: HowEnded,
    /// The count of steps when it began.
    pub(crate) since: u64,
}

/// What belongs to the position at work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedMemory {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) effects: BTreeMap<String, Mark>,
}

/// What is known of an effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mark {
    /// It was about to happen. Nobody knows whether it did.
    Intent,
    /// It happened: its result.
    Done(Value),
}

/// A place to come back to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedParked {
    pub(crate) cursor: SavedCursor,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) questions: Vec<SavedQuestion>,
    #[serde(default)]
    pub(crate) memory: SavedMemory,
}

/// A question of the position at work, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedQuestion {
    pub(crate) interrupt: Interrupt,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resolution: Option<Resolution>,
}

/// An answer as a letter carries it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedAnswer {
    pub(crate) value: Value,
    pub(crate) digest: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<String>,
    pub(crate) at: UtcMillis,
}
