//! Where a session's loop stands.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::Position;
use crate::step::Failure;

use super::StepRef;
use super::end::End;
use super::visits::Visits;

/// Where a session's loop stands. Plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cursor<P: Ord = Arc<str>> {
    /// The step that is entered next, or that is at work. Means nothing at position 0.
    pub(crate) step: P,
    /// Numbers this entry over the session.
    pub(crate) position: Position,
    /// The highest position given so far: more than `position` once a session resumes after its
    /// `.finally(..)` has run.
    pub(crate) last: Position,
    /// How often the step is known to have been tried at this position. The attempt at work is not
    /// counted before it is over.
    #[serde(default)]
    pub(crate) attempt: u32,
    /// How many of those were retries, since the last commit or resume.
    #[serde(default)]
    pub(crate) retries: u32,
    /// How many steps this turn has committed.
    pub(crate) steps: u64,
    /// How often each step was entered in this turn.
    #[serde(default = "Visits::new", skip_serializing_if = "Visits::is_empty")]
    pub(crate) visits: Visits<P>,
    /// The failure that led here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<Arc<Failure>>,
    /// Set while the steps of `.finally(..)` run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) finishing: Option<Kept>,
}

/// How a turn will have ended once `.finally(..)` has run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) end: End,
    /// The count of steps when it began.
    pub(crate) since: u64,
}

impl<P: StepRef> Cursor<P> {
    /// Before the first step of the first turn.
    pub(super) fn not_entered() -> Self {
        Self {
            step: P::default(),
            position: Position(0),
            last: Position(0),
            attempt: 0,
            retries: 0,
            steps: 0,
            visits: Visits::new(),
            failure: None,
            finishing: None,
        }
    }

    /// Whether a step was entered in this session.
    pub(crate) fn is_entered(&self) -> bool {
        self.position.0 > 0
    }

    /// Begins a turn. Positions count on: they are the session's.
    pub(super) fn restart(&mut self, start: &P) {
        *self = Self { last: self.last, ..Self::not_entered() };
        self.enter(start);
    }

    /// Moves on to a new entry into `step`.
    pub(super) fn enter(&mut self, step: &P) {
        self.visits.add(step, 1);
        self.step = step.clone();
        self.last.0 = self.last.0.saturating_add(1);
        self.position = self.last;
        self.attempt = 0;
        self.retries = 0;
        self.failure = None;
    }

    /// A failure says how often the step was tried, the last time included.
    pub(super) fn count_attempts(&mut self, failure: Option<&Arc<Failure>>) {
        if let Some(failure) = failure
            && failure.position == self.position
        {
            self.attempt = self.attempt.max(failure.attempts);
        }
    }

    pub(super) fn rename(&mut self, renamed: &BTreeMap<P, P>) {
        if let Some(new) = renamed.get(&self.step) {
            self.step = new.clone();
        }
        for (old, count) in std::mem::replace(&mut self.visits, Visits::new()).iter() {
            self.visits.add(renamed.get(old).unwrap_or(old), count);
        }
    }
}
