//! A run that waits for a timer itself.

use tokio::time::Instant;

use crate::clock::UtcMillis;
use crate::context::Context;
use crate::session::Session;
use crate::state::State;

use super::driver::Driver;
use super::timers::{SHORT, left, until};

impl<C: Context, S: State> Driver<C, S> {
    /// Whether the run waits for a timer itself.
    pub(super) fn stays(&self, due: UtcMillis) -> bool {
        self.core.journal.is_none() || left(due) < SHORT
    }

    /// Waits for the first timer of the step, or for a stop. Returns false if the run is to settle
    /// instead.
    pub(super) async fn sleep_here(&mut self) -> bool {
        let due = self.core.session(Session::first_due);
        let Some(due) = due.filter(|due| self.stays(*due)) else { return false };
        let began = Instant::now();
        tokio::select! {
            () = until(Some(due)) => {}
            () = self.core.stop.stopping().cancelled() => {}
        }
        self.rested(began);
        true
    }

    /// The run has waited since then: that is no work.
    pub(super) fn rested(&mut self, since: Instant) {
        self.clock = self.clock.map(|started| started + since.elapsed());
    }
}
