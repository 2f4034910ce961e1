//! Sessions whose runs have ended their process more than once at one step: of these a worker runs one at
//! a time, so that one which was merely at work beside another is not failed for what that one does.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::id::SessionId;
use crate::observe::{Event, EventKind, Observer};
use crate::recovery::{Admission, Admitted};

/// A session that was recovered so often where it stands is suspected. The first time it is not: a
/// worker that is killed has many sessions at work, and they continue at once.
const SUSPECTED: u32 = 1;

#[derive(Default)]
pub(super) struct Suspects(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// Whether one of them is where it is suspected.
    runs: bool,
    /// Those that were given back until then.
    waiting: HashSet<SessionId>,
}

impl Suspects {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sessions that are not to be claimed now.
    pub(super) fn waiting(&self) -> Vec<SessionId> {
        self.lock().waiting.iter().cloned().collect()
    }
}

/// What one session has to pass.
pub(super) struct Gate {
    suspects: Arc<Suspects>,
    session: SessionId,
    /// Whether it is the one that runs.
    runs: AtomicBool,
}

impl Gate {
    pub(super) fn new(suspects: Arc<Suspects>, session: SessionId) -> Self {
        Self { suspects, session, runs: AtomicBool::new(false) }
    }

    /// It has come further, or does not run any more.
    pub(super) fn leave(&self) {
        if self.runs.swap(false, Ordering::SeqCst) {
            let mut suspects = self.suspects.lock();
            suspects.runs = false;
            suspects.waiting.clear();
        }
    }
}

impl Admission for Gate {
    fn admit(&self, recovered: u32) -> Admitted {
        if recovered < SUSPECTED {
            return Admitted::Freely;
        }
        // It does not wait while it is held: a parent that calls it may have it then.
        let mut suspects = self.suspects.lock();
        if suspects.runs {
            suspects.waiting.insert(self.session.clone());
            return Admitted::NotNow;
        }
        suspects.runs = true;
        self.runs.store(true, Ordering::SeqCst);
        Admitted::Observed
    }
}

impl Observer for Gate {
    fn on_event(&self, event: &Event) {
        let is_further = matches!(
            event.kind,
            EventKind::Committed { .. }
                | EventKind::ItemDone { .. }
                | EventKind::Diverted { .. }
                | EventKind::Finishing { .. }
                | EventKind::Settled { .. }
        );
        // Its children have events of their own.
        if is_further && event.session == self.session {
            self.leave();
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn one_suspect_runs_at_a_time_and_the_others_are_not_claimed_until_it_has_left() {
        let suspects = Arc::<Suspects>::default();
        let id = |name: &str| SessionId::new(name).unwrap();
        let gate = |name: &str| Gate::new(Arc::clone(&suspects), id(name));
        let [fresh, one, other] = ["fresh", "one", "other"].map(gate);
        assert_eq!(one.admit(1), Admitted::Observed);
        assert_eq!(fresh.admit(0), Admitted::Freely);
        assert_eq!(other.admit(3), Admitted::NotNow);
        assert_eq!(suspects.waiting(), [id("other")]);
        // Only the one that runs ends the wait.
        drop((fresh, other));
        assert_eq!(suspects.waiting(), [id("other")]);
        one.leave();
        assert_eq!(suspects.waiting(), []);
        let again = gate("other");
        assert_eq!(again.admit(3), Admitted::Observed);
        // What left before has no part in it.
        drop(one);
        assert_eq!(gate("one").admit(1), Admitted::NotNow);
        drop(again);
        assert_eq!(gate("one").admit(1), Admitted::Observed);
    }
}
