//! Durable timers, inside a step.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::effects::{SleepReply, Wake};
use super::error::StepError;
use super::scope::Scope;

/// A step that sleeps. [`Cx::sleep`](crate::Cx::sleep) and [`Cx::sleep_until`](crate::Cx::sleep_until)
/// create it.
#[must_use = "a timer starts when it is awaited"]
pub struct Sleep {
    scope: Scope,
    key: String,
    /// `None` once the timer was started.
    wake: Option<Wake>,
}

impl Sleep {
    pub(crate) fn new(scope: Scope, key: String, wake: Wake) -> Self {
        Self { scope, key, wake: Some(wake) }
    }
}

impl Future for Sleep {
    type Output = Result<(), StepError>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        // Nothing wakes this once it waits: the driver drops the step.
        let Some(wake) = self.wake.take() else { return Poll::Pending };
        match self.scope.effects.sleep(self.scope.place, &self.key, wake) {
            SleepReply::Due => Poll::Ready(Ok(())),
            SleepReply::KeyReused => Poll::Ready(Err(StepError::fatal(format!(
                "the key `{}` is used twice in one attempt (give every timer of a step its own key)",
                self.key
            )))),
            SleepReply::Waits | SleepReply::Stale => Poll::Pending,
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("key", &self.key).finish_non_exhaustive()
    }
}
