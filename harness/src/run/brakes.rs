use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

/// What stops a run from elsewhere. A token can be awaited but takes a lock to be read, which a
/// flag does not: the driver reads the flags before every step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Brakes {
    flags: Arc<(AtomicBool, AtomicBool)>,
    stop: CancellationToken,
    cancel: CancellationToken,
}

impl Brakes {
    /// At the next boundary.
    pub(crate) fn stop(&self) {
        self.flags.0.store(true, Ordering::Release);
        self.stop.cancel();
    }

    /// In the middle of a step.
    pub(crate) fn cancel(&self) {
        self.flags.1.store(true, Ordering::Release);
        self.stop();
        self.cancel.cancel();
    }

    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.flags.0.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn is_cancelled(&self) -> bool {
        self.flags.1.load(Ordering::Acquire)
    }

    /// Cancelled by a stop, and by a cancel.
    pub(crate) fn stopping(&self) -> &CancellationToken {
        &self.stop
    }

    pub(crate) fn cancelling(&self) -> &CancellationToken {
        &self.cancel
    }
}
