//! One attempt at a step: polls its body inside the step's scope and span, contains its panics, and
//! gives up on it when something else comes first.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::{Sleep, sleep_until};
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::step::{Active, StepError};

use super::advance::{Begun, Entered};
use super::effects::RunCore;

/// How polling a body ended.
pub(super) enum Polled<T> {
    Ready(Result<T, StepError>),
    Panicked(String),
    /// It waits for an answer, or has asked a question and gone on without one.
    Asked,
    Cancelled,
    TimedOut,
    OutOfTime,
}

/// A body at work.
pub(super) struct Attempt<T> {
    begun: Begun<T>,
    entered: Entered,
    scope: Option<Active>,
    core: Arc<RunCore>,
    /// Made when the body first has to wait.
    waiting: Option<Waiting>,
}

struct Waiting {
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    timeout: Option<Pin<Box<Sleep>>>,
    wall: Option<Pin<Box<Sleep>>>,
}

impl<T> Attempt<T> {
    pub(super) fn new(
        begun: Begun<T>,
        entered: Entered,
        scope: Option<Active>,
        core: Arc<RunCore>,
    ) -> Self {
        Self { begun, entered, scope, core, waiting: None }
    }

    /// Drops the body inside its scope; a panic there changes nothing.
    pub(super) fn end(self) {
        let Self { begun, mut scope, .. } = self;
        let dropped =
            Active::enter(&mut scope, || catch_unwind(AssertUnwindSafe(move || drop(begun))));
        if let Err(panic) = dropped {
            tracing::error!(panic = words(&*panic), "a step panicked while it was dropped");
        }
    }

    /// What the body itself says. The first poll may have been made already.
    fn poll_body(&mut self, task: &mut Context<'_>) -> Option<Polled<T>> {
        if std::mem::replace(&mut self.begun.polled, false) {
            return None;
        }
        let body = &mut self.begun.body;
        let span = &self.entered.span;
        let polled = Active::enter(&mut self.scope, || {
            let _entered = span.enter();
            catch_unwind(AssertUnwindSafe(|| body.poll(task)))
        });
        match polled {
            Ok(Poll::Ready(result)) => Some(Polled::Ready(result)),
            Ok(Poll::Pending) => None,
            Err(panic) => Some(Polled::Panicked(words(&*panic))),
        }
    }
}

impl<T> Future for Attempt<T> {
    type Output = Polled<T>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Polled<T>> {
        let this = &mut *self;
        let cancelled = this.core.brakes.is_cancelled();
        let ended = if cancelled { None } else { this.poll_body(task) };
        this.core.waker.register(task.waker());
        // Asked first: no default may stand in for an answer.
        if this.core.has_asked(this.entered.place) {
            return Poll::Ready(Polled::Asked);
        }
        // What a step returns after a cancel is discarded, even if it heard of the cancel first.
        if this.core.brakes.is_cancelled() {
            return Poll::Ready(Polled::Cancelled);
        }
        if let Some(ended) = ended {
            return Poll::Ready(ended);
        }
        let Entered { timeout, wall, .. } = this.entered;
        let waiting = this.waiting.get_or_insert_with(|| Waiting {
            cancelled: Box::pin(this.core.brakes.cancelling().clone().cancelled_owned()),
            timeout: timeout.map(|at| Box::pin(sleep_until(at))),
            wall: wall.map(|at| Box::pin(sleep_until(at))),
        });
        if waiting.cancelled.as_mut().poll(task).is_ready() {
            return Poll::Ready(Polled::Cancelled);
        }
        let mut over = |timer: &mut Option<Pin<Box<Sleep>>>| {
            timer.as_mut().is_some_and(|timer| timer.as_mut().poll(task).is_ready())
        };
        if over(&mut waiting.wall) {
            return Poll::Ready(Polled::OutOfTime);
        }
        if over(&mut waiting.timeout) {
            return Poll::Ready(Polled::TimedOut);
        }
        Poll::Pending
    }
}

/// What a panic said.
pub(crate) fn words(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a value that is no text".to_owned())
}
