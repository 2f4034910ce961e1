//! How a run is stopped from elsewhere.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use tokio_util::sync::CancellationToken;

use crate::journal::LeaseObserver;

/// Stops a run, or cancels it. The driver reads the flags before every step; a token is made for
/// those that await it.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopSignal {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    stop: Flag,
    cancel: AtomicBool,
    /// Polls the attempts in flight again; set once the run begins.
    attempts: OnceLock<Weak<dyn Wake>>,
    /// The handle of the run was dropped: its outcome has no receiver.
    abandoned: AtomicBool,
    /// Another process continues the run if it is dropped.
    handed_over: AtomicBool,
}

/// Polls the attempts of a run again.
pub(super) trait Wake: Send + Sync {
    fn wake_attempts(&self);
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopSignal")
            .field("stop", &self.stop.is_set())
            .field("cancel", &self.cancel)
            .finish_non_exhaustive()
    }
}

/// A flag that can be awaited.
#[derive(Debug, Default)]
struct Flag {
    set: AtomicBool,
    token: OnceLock<CancellationToken>,
}

impl Flag {
    fn set(&self) {
        self.set.store(true, Ordering::SeqCst);
        if let Some(token) = self.token.get() {
            token.cancel();
        }
    }

    fn is_set(&self) -> bool {
        self.set.load(Ordering::SeqCst)
    }

    fn token(&self) -> &CancellationToken {
        let token = self.token.get_or_init(CancellationToken::new);
        // The flag may have been set before the token was there.
        if self.is_set() {
            token.cancel();
        }
        token
    }
}

impl StopSignal {
    /// Stops the run at the next boundary.
    pub(crate) fn stop(&self) {
        self.shared.stop.set();
    }

    /// Stops the run in the middle of a step.
    pub(crate) fn cancel(&self) {
        self.shared.cancel.store(true, Ordering::SeqCst);
        self.stop();
        if let Some(attempts) = self.shared.attempts.get().and_then(Weak::upgrade) {
            attempts.wake_attempts();
        }
    }

    /// The run begins: a cancel polls its attempts again.
    pub(super) fn attach(&self, attempts: Weak<dyn Wake>) {
        // A signal is of one run.
        let _ = self.shared.attempts.set(attempts);
    }

    /// Whether a run has begun that this stops.
    pub(super) fn has_begun(&self) -> bool {
        self.shared.attempts.get().is_some()
    }

    /// The outcome has no receiver.
    pub(crate) fn abandon(&self) {
        self.shared.abandoned.store(true, Ordering::SeqCst);
    }

    /// If the run is dropped, another process continues it: it does not settle as cancelled.
    pub(crate) fn hand_over(&self) {
        self.shared.handed_over.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_handed_over(&self) -> bool {
        self.shared.handed_over.load(Ordering::SeqCst)
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.shared.abandoned.load(Ordering::SeqCst)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.shared.stop.is_set()
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.shared.cancel.load(Ordering::SeqCst)
    }

    /// Cancelled by a stop, and by a cancel.
    pub(crate) fn stopping(&self) -> &CancellationToken {
        self.shared.stop.token()
    }
}

impl LeaseObserver for StopSignal {
    fn stop(&self) {
        StopSignal::stop(self);
    }

    fn lost(&self) {
        // What the step at work returns could not be recorded.
        self.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_made_after_the_stop_is_cancelled() {
        let signal = StopSignal::default();
        signal.stop();
        assert!(signal.stopping().is_cancelled() && !signal.is_cancelled());
        let early = StopSignal::default();
        let stopping = early.stopping().clone();
        early.cancel();
        assert!(stopping.is_cancelled() && early.is_cancelled() && early.is_stopped());
    }
}
