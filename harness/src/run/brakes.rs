use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use futures_util::task::AtomicWaker;
use tokio_util::sync::CancellationToken;

use crate::journal::Held;

/// What stops a run from elsewhere, and wakes it. Flags, because the driver reads them before every
/// step; a token to await is made for those who await it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Brakes {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    cancel: AtomicBool,
    /// Of the step at work.
    waker: AtomicWaker,
    stopping: OnceLock<CancellationToken>,
    /// Nobody will take the outcome.
    abandoned: AtomicBool,
}

impl Brakes {
    /// At the next boundary.
    pub(crate) fn stop(&self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        if let Some(token) = self.shared.stopping.get() {
            token.cancel();
        }
    }

    /// In the middle of a step.
    pub(crate) fn cancel(&self) {
        self.shared.cancel.store(true, Ordering::SeqCst);
        self.stop();
        self.wake();
    }

    /// Has the step at work polled again.
    pub(crate) fn wake(&self) {
        self.shared.waker.wake();
    }

    /// Says whom to wake. Look at the flags after this, not before.
    pub(crate) fn register(&self, waker: &Waker) {
        self.shared.waker.register(waker);
    }

    /// Nobody will take the outcome.
    pub(crate) fn abandon(&self) {
        self.shared.abandoned.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.shared.abandoned.load(Ordering::SeqCst)
    }

    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn is_cancelled(&self) -> bool {
        self.shared.cancel.load(Ordering::Acquire)
    }

    /// Cancelled by a stop, and by a cancel.
    pub(crate) fn stopping(&self) -> &CancellationToken {
        let token = self.shared.stopping.get_or_init(CancellationToken::new);
        // A stop that came before the token was there has not seen it.
        if self.shared.stop.load(Ordering::SeqCst) {
            token.cancel();
        }
        token
    }
}

impl Held for Brakes {
    fn stop(&self) {
        Brakes::stop(self);
    }

    fn lost(&self) {
        // What the step at work returns could not be recorded any more.
        self.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_made_after_the_stop_is_cancelled() {
        let brakes = Brakes::default();
        brakes.stop();
        assert!(brakes.stopping().is_cancelled() && !brakes.is_cancelled());
        let early = Brakes::default();
        let token = early.stopping().clone();
        early.cancel();
        assert!(token.is_cancelled() && early.is_stopped());
    }
}
