use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::id::RunId;
use crate::observe::SettledAs;
use crate::session::{Ending, Session};
use crate::state::State;
use crate::step::Failure;

use super::held::{Resumer, Slot};
use super::outcome::Outcome;

/// A run that has settled, before it is told as an outcome.
pub(crate) struct Settlement<S> {
    pub(crate) session: Session<S>,
    pub(crate) how: How,
    /// The state did not survive a panic of a reducer or a route.
    pub(crate) lost: bool,
    pub(crate) run: RunId,
    /// Where the session came from.
    pub(crate) home: Option<Slot<S>>,
}

pub(crate) enum How {
    /// The turn is over, and this is what `.finally(..)` failed with, if it did.
    Turn(Ending, Option<Arc<Failure>>),
    Interrupted,
    Stopped,
    Cancelled,
}

impl How {
    pub(crate) fn describe(&self, questions: usize) -> SettledAs {
        match self {
            Self::Turn(ending, _) => ending.describe(),
            Self::Interrupted => SettledAs::Interrupted { questions },
            Self::Stopped => SettledAs::Stopped,
            Self::Cancelled => SettledAs::Cancelled,
        }
    }
}

impl<S: State> Settlement<S> {
    /// Tells the settlement as an outcome. If nobody will take it, the session goes back to where
    /// it came from.
    pub(crate) fn into_outcome(
        self,
        abandoned: &AtomicBool,
        agent: Arc<dyn Resumer<S>>,
    ) -> Outcome<S> {
        let outcome = Outcome::new(self, agent);
        if abandoned.load(Ordering::SeqCst) {
            outcome.give_back();
        }
        outcome
    }
}
