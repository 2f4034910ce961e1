//! How fast a disk keeps what it is given, and how many are at work on it: where it is fast and one
//! session is, who asks for something waits for it in place.
//!
//! To hand a wait over to another thread and to be woken from there takes some 40 microseconds,
//! a third of what a sync takes on a good disk. But a thread that waits for the disk runs no other
//! task. So it does that only where the last waits were short, and where no other session of this
//! process could use the time: those of many sessions are better side by side.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use harness::SessionId;

/// No wait in place may be longer than this, as far as one can tell.
const SHORT: Duration = Duration::from_micros(500);

/// How many waits after one that was not are elsewhere.
const PENALTY: u32 = 32;

/// How many short waits it takes to know a disk.
const TRIALS: u32 = 2;

/// The paces of the disks that this process has had stores on.
static PACES: Mutex<BTreeMap<u64, Arc<Pace>>> = Mutex::new(BTreeMap::new());

/// The pace of one disk.
#[derive(Debug)]
pub(crate) struct Pace {
    /// How many waits are elsewhere before one is tried in place.
    elsewhere: AtomicU32,
    /// How many sessions are held.
    held: AtomicUsize,
}

impl Default for Pace {
    fn default() -> Self {
        Self { elsewhere: AtomicU32::new(TRIALS), held: AtomicUsize::new(0) }
    }
}

impl Pace {
    /// The pace of the disk of this number.
    pub(crate) fn of(device: u64) -> Arc<Self> {
        let mut paces = PACES.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(paces.entry(device).or_default())
    }

    /// Whether a wait for this disk is as good as none.
    pub(crate) fn is_short(&self) -> bool {
        self.elsewhere.load(Ordering::Relaxed) == 0 && self.held.load(Ordering::Relaxed) <= 1
    }

    /// The disk took so long to make something durable.
    pub(crate) fn took(&self, time: Duration) {
        if time > SHORT {
            self.elsewhere.store(PENALTY, Ordering::Relaxed);
        } else {
            let less = |left: u32| left.checked_sub(1);
            // At 0 it stays there.
            let _ = self.elsewhere.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
    }
}

/// The sessions that a store holds, which its disk's pace counts.
#[derive(Debug)]
pub(crate) struct Holding {
    pub(crate) pace: Arc<Pace>,
    sessions: Mutex<HashSet<SessionId>>,
}

impl Holding {
    pub(crate) fn new(pace: Arc<Pace>) -> Self {
        Self { pace, sessions: Mutex::default() }
    }

    /// A lease was taken.
    pub(crate) fn takes(&self, session: &SessionId) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.insert(session.clone()) {
            self.pace.held.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A lease was given back, or lost.
    pub(crate) fn leaves(&self, session: &SessionId) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.remove(session) {
            self.pace.held.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        let held = self.sessions.get_mut().unwrap_or_else(PoisonError::into_inner).len();
        self.pace.held.fetch_sub(held, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Duration = Duration::from_micros(100);
    const SLOW: Duration = Duration::from_millis(5);

    #[test]
    fn a_disk_is_fast_once_it_was_and_slow_for_long() {
        let pace = Pace::default();
        assert!(!pace.is_short(), "nothing is known of it");
        for _ in 0..TRIALS {
            pace.took(FAST);
        }
        assert!(pace.is_short());
        pace.took(SLOW);
        for _ in 0..PENALTY {
            assert!(!pace.is_short());
            pace.took(FAST);
        }
        assert!(pace.is_short());
    }

    #[test]
    fn two_sessions_do_not_wait_for_each_other() {
        let pace = Arc::new(Pace::default());
        (0..TRIALS).for_each(|_| pace.took(FAST));
        let (one, other) = (Holding::new(Arc::clone(&pace)), Holding::new(Arc::clone(&pace)));
        let (a, b) = (SessionId::fresh(), SessionId::fresh());
        one.takes(&a);
        one.takes(&a);
        assert!(pace.is_short());
        other.takes(&b);
        assert!(!pace.is_short());
        one.leaves(&a);
        one.leaves(&a);
        assert!(pace.is_short());
        one.takes(&a);
        assert!(!pace.is_short());
        drop(other);
        assert!(pace.is_short());
    }

    #[test]
    fn stores_on_one_disk_share_its_pace() {
        let device = u64::MAX - 7;
        let pace = Pace::of(device);
        assert!(Arc::ptr_eq(&pace, &Pace::of(device)));
        assert!(!Arc::ptr_eq(&pace, &Pace::of(device - 1)));
    }
}
