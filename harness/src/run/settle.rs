use std::sync::Arc;
use std::time::Duration;

use crate::graph::Wiring;
use crate::id::RunId;
use crate::log::{HowSettled, Settled};
use crate::observe::SettledAs;
use crate::session::{Cursor, Ending, Session};
use crate::state::State;
use crate::step::Failure;

use super::brakes::Brakes;
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
    /// Whether the session is in a store, and not in this process alone.
    pub(crate) durable: bool,
}

pub(crate) enum How {
    /// The turn is over, and this is what `.finally(..)` failed with, if it did.
    Turn(Ending, Option<Arc<Failure>>),
    Interrupted,
    Stopped,
    Cancelled,
    /// Nothing more could be recorded, and why.
    Cut(Arc<Failure>),
}

impl How {
    pub(crate) fn describe(&self, questions: usize) -> SettledAs {
        match self {
            Self::Turn(ending, _) => ending.describe(),
            Self::Interrupted => SettledAs::Interrupted { questions },
            Self::Stopped => SettledAs::Stopped,
            Self::Cancelled => SettledAs::Cancelled,
            Self::Cut(failure) => SettledAs::Failed { failure: (**failure).clone() },
        }
    }

    /// How the log tells it. `None` if it cannot be told there.
    pub(crate) fn to_settled(&self, active: Duration, cursor: &Cursor) -> Option<Settled> {
        let (how, finally_failure) = match self {
            Self::Turn(ending, failure) => {
                (HowSettled::Turn(ending.to_saved()), failure.as_deref().cloned().map(Box::new))
            }
            Self::Interrupted => (HowSettled::Interrupted, None),
            Self::Stopped => (HowSettled::Stopped, None),
            Self::Cancelled => (HowSettled::Cancelled, None),
            Self::Cut(_) => return None,
        };
        let active_ms = u64::try_from(active.as_millis()).unwrap_or(u64::MAX);
        let attempt = match how {
            HowSettled::Turn(_) => 0,
            _ => cursor.attempt,
        };
        Some(Settled { how, finally_failure, active_ms, attempt })
    }

    /// What the log tells.
    pub(crate) fn restore(settled: &Settled, wiring: &Wiring) -> Self {
        match &settled.how {
            HowSettled::Turn(ending) => {
                let failure = settled.finally_failure.as_deref().cloned().map(Arc::new);
                Self::Turn(Ending::restore(ending, wiring), failure)
            }
            HowSettled::Interrupted => Self::Interrupted,
            HowSettled::Stopped => Self::Stopped,
            HowSettled::Cancelled => Self::Cancelled,
        }
    }
}

impl<S: State> Settlement<S> {
    /// Tells the settlement as an outcome. If nobody will take it, the session goes back to where
    /// it came from.
    pub(crate) fn into_outcome(
        self,
        brakes: &Brakes,
        agent: impl FnOnce() -> Arc<dyn Resumer<S>>,
    ) -> Outcome<S> {
        let outcome = Outcome::new(self, agent);
        if brakes.is_abandoned() {
            outcome.give_back();
        }
        outcome
    }
}
