use std::sync::Arc;

use crate::graph::{Limit, Wiring};
use crate::id::Position;
use crate::observe::SettledAs;
use crate::step::{Failure, Place};

/// Where a session's loop stands. Plain data.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cursor {
    /// The step that is entered next, or that is at work.
    pub(crate) step: usize,
    /// Numbers this entry over the session.
    pub(crate) position: Position,
    /// The highest number given so far: more than `position` once a session goes on after its
    /// `.finally(..)` has run.
    pub(crate) last: Position,
    pub(crate) half: Half,
    /// How often the step was tried at this position.
    pub(crate) attempt: u32,
    /// How many of those tries may not have begun: a process died at this position, before the step
    /// was entered or behind.
    pub(crate) unsure: u32,
    /// How many of those tries were retries, since the last commit or resume.
    pub(crate) retries: u32,
    /// How many steps this turn has committed.
    pub(crate) steps: u64,
    /// How often each step was entered in this turn; empty in loops without `.at_most(..)`.
    pub(crate) visits: Box<[u32]>,
    /// The failure that led here.
    pub(crate) failure: Option<Arc<Failure>>,
    /// Set while the steps of `.finally(..)` run.
    pub(crate) finishing: Option<Box<Finishing>>,
}

/// Which half of a step comes next: gates have two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Half {
    #[default]
    First,
    Answer,
    /// The question was not answered in time.
    Expired,
}

/// How a turn will have ended once `.finally(..)` is through.
#[derive(Clone, Debug)]
pub(crate) struct Finishing {
    pub(crate) ending: Ending,
    /// The count of steps when it began.
    pub(crate) since: u64,
}

/// The ways a turn ends, as opposed to pausing.
#[derive(Clone, Debug)]
pub(crate) enum Ending {
    Ended { signals: Option<&'static str>, signal: Option<&'static str> },
    Failed(Arc<Failure>),
    Exhausted(Limit),
}

impl Ending {
    /// An end without a signal.
    pub(crate) fn plain() -> Self {
        Self::Ended { signals: None, signal: None }
    }

    pub(crate) fn describe(&self) -> SettledAs {
        match self {
            Self::Ended { signal, .. } => SettledAs::Ended { signal: *signal },
            Self::Failed(failure) => SettledAs::Failed { failure: (**failure).clone() },
            Self::Exhausted(limit) => SettledAs::Exhausted { limit: *limit },
        }
    }
}

impl Cursor {
    pub(crate) fn start(wiring: &Wiring) -> Self {
        Self::start_behind(wiring, Position::default())
    }

    /// The start of a turn, in a session that has given numbers to positions up to `last`.
    pub(crate) fn start_behind(wiring: &Wiring, last: Position) -> Self {
        let counted = wiring.nodes.iter().any(|node| node.at_most.is_some());
        let visits = if counted { vec![0; wiring.nodes.len()] } else { Vec::new() }.into();
        let mut cursor = Self { visits, last, ..Self::default() };
        cursor.enter(wiring.start);
        cursor
    }

    /// Where the attempt at work stands.
    #[inline]
    pub(crate) fn place(&self) -> Place {
        Place::new(self.step, self.position, self.attempt)
    }

    /// Moves on to a new entry into `step`.
    #[inline]
    pub(crate) fn enter(&mut self, step: usize) {
        self.step = step;
        self.last.0 += 1;
        self.position = self.last;
        self.half = Half::First;
        self.attempt = 0;
        self.unsure = 0;
        self.retries = 0;
        self.failure = None;
        if let Some(visits) = self.visits.get_mut(step) {
            *visits = visits.saturating_add(1);
        }
    }
}
