//! What recording an attempt comes to.

use std::sync::Arc;
use std::time::Duration;

use crate::session::End;
use crate::step::Failure;

/// What was recorded of an attempt.
pub(super) enum Recorded {
    /// A step is done, or the turn is about to end.
    Step,
    /// A step waits for timers.
    Timers,
    /// The attempt failed, and the next one is made after this time.
    Retry(Duration),
    /// How the run settles is decided.
    End(Box<Conclusion>),
}

/// How a run settles, before that is recorded.
pub(super) enum Conclusion {
    Settle {
        end: End,
        /// What the steps of `.finally(..)` failed with, if they did.
        finally_failure: Option<Arc<Failure>>,
    },
    /// Nothing more could be recorded, and why.
    Unrecorded(Arc<Failure>),
}

impl Conclusion {
    pub(super) fn of(end: End) -> Self {
        Self::Settle { end, finally_failure: None }
    }
}
