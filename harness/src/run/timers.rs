//! Timers: which are started, which wait in the process, which are due.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::clock::UtcMillis;
use crate::context::Context;
use crate::graph::Wiring;
use crate::session::{Session, Timer};
use crate::state::State;

use super::core::RunCore;
use super::driver::Driver;

/// A stored session waits for less than this in the process: to settle, and to be claimed again by a
/// process that looks once a second, takes longer.
pub(super) const SHORT: Duration = Duration::from_secs(1);

/// The timer of the `.after(..)` of the step at work, which starts now.
pub(super) fn after(wiring: &Wiring, core: &RunCore) -> Vec<Timer> {
    let step = core.session(|session| session.cursor.step);
    let after = wiring.nodes[step].policy.after;
    after.map(|time| Timer::new(None, UtcMillis::now().after(time))).into_iter().collect()
}

/// The keys of the timers that a step, or an item of it, has waited for and that are due.
pub(super) fn fired(session: &Session<usize>, item: Option<u32>) -> Vec<Option<String>> {
    let timers = session.timers_of(item).filter(|timers| !timers.is_empty());
    let Some(timers) = timers else { return Vec::new() };
    let now = UtcMillis::now();
    timers.waiting().filter(|timer| timer.due <= now).map(|timer| timer.key.clone()).collect()
}

/// Waits until a time of this process's clock; indefinitely without one.
pub(super) async fn until(due: Option<UtcMillis>) {
    match due {
        Some(due) => sleep(left(due)).await,
        None => std::future::pending().await,
    }
}

fn left(due: UtcMillis) -> Duration {
    Duration::from_millis(due.0.saturating_sub(UtcMillis::now().0))
}

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
