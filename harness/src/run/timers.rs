//! Timers: which start, which are due, which a run waits for itself.

use std::time::Duration;

use tokio::time::sleep;

use crate::clock::UtcMillis;
use crate::graph::Wiring;
use crate::observe::EventKind;
use crate::session::{Session, Timer};
use crate::step::Place;

use super::core::RunCore;

/// A stored session waits for less than this in the process: to settle, and to be claimed again by a
/// process that looks once a second, takes longer.
pub(super) const SHORT: Duration = Duration::from_secs(1);

/// The timer of the `.after(..)` of the step at work, which starts now.
pub(super) fn after(wiring: &Wiring, core: &RunCore) -> Vec<Timer> {
    let step = core.session(|session| session.cursor.step);
    let after = wiring.nodes[step].policy.after;
    after.map(|time| Timer::new(None, UtcMillis::now().after(time))).into_iter().collect()
}

impl RunCore {
    /// Publishes for which timers an attempt that begins has waited.
    pub(super) fn publish_fired(&self, place: Place) {
        if self.is_silent() {
            return;
        }
        for key in self.session(|session| fired(session, place.item)) {
            self.publish(Some(place), || EventKind::TimerFired { key });
        }
    }
}

/// The keys of the timers that a step, or an item of it, has waited for and that are due.
fn fired(session: &Session<usize>, item: Option<u32>) -> Vec<Option<String>> {
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

/// How long until then.
pub(super) fn left(due: UtcMillis) -> Duration {
    Duration::from_millis(due.0.saturating_sub(UtcMillis::now().0))
}
