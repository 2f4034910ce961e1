//! One attempt at a step, or at an item of one: polls its body inside the step's scope and span,
//! contains its panics, and gives up on it when something else comes first.

use std::future::{Future as _, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::WaitForCancellationFutureOwned;
use tracing::Span;

use crate::step::{Asked, BoxFuture, FailureKind, Place, Scope, StepError};
use crate::text::words;

use super::core::RunCore;

/// How an attempt ended.
pub(super) enum Ended<T> {
    Done(T),
    Failed(StepError),
    /// It asked questions that have no answer: nothing else that it returned counts.
    Asked(Vec<(String, Asked)>),
    Cancelled,
    /// The wall budget was used up.
    OutOfTime,
}

/// An attempt that is about to begin.
pub(super) struct Attempt {
    pub(super) core: Arc<RunCore>,
    pub(super) scope: Scope,
    pub(super) timeout: Option<Duration>,
    /// When the wall budget is used up.
    pub(super) wall: Option<Instant>,
}

/// What may end an attempt other than its body; made when the body first waits.
struct Watch {
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    timeout: Option<Pin<Box<Sleep>>>,
    wall: Option<Pin<Box<Sleep>>>,
}

/// Why a body is given up.
enum GivenUp {
    Asked,
    Cancelled,
    OutOfTime,
    TimedOut,
}

impl Attempt {
    /// Makes the body, polls it to its end, and waits for the effects it has begun.
    pub(super) async fn run<T>(
        self,
        make: impl FnOnce() -> BoxFuture<Result<T, StepError>>,
    ) -> Ended<T> {
        let place = self.scope.place;
        self.core.enter(place);
        let span = self.span(place);
        let due = self.timeout.map(|limit| Instant::now() + limit);
        let ended = match self.inside(&span, make) {
            Ok(mut body) => {
                let mut watch = None;
                let ended = poll_fn(|task| self.poll(&span, &mut body, &mut watch, due, task));
                let ended = ended.await;
                self.core.effects_of(place).await;
                match (self.inside(&span, move || drop(body)), ended) {
                    (Err(panic), Ok(_)) => Ok(Err(panicked(&panic))),
                    // A body that is given up may panic: that changes nothing.
                    (Err(panic), given_up) => {
                        tracing::error!(panic, "a step panicked while it was dropped");
                        given_up
                    }
                    (Ok(()), ended) => ended,
                }
            }
            Err(panic) => Ok(Err(panicked(&panic))),
        };
        let asked = self.core.close(place).await;
        match ended {
            Ok(Ok(value)) => Ended::Done(value),
            Ok(Err(error)) => Ended::Failed(error),
            Err(GivenUp::Asked) => Ended::Asked(asked),
            Err(GivenUp::Cancelled) => Ended::Cancelled,
            Err(GivenUp::OutOfTime) => Ended::OutOfTime,
            Err(GivenUp::TimedOut) => {
                let limit = self.timeout.unwrap_or_default();
                let message = format!("the step took longer than its timeout of {limit:?}");
                Ended::Failed(StepError::of(FailureKind::Timeout, true, message))
            }
        }
    }

    fn span(&self, place: Place) -> Span {
        tracing::debug_span!(
            target: "harness",
            "harness.step",
            step = &*self.core.wiring().nodes[place.step].name,
            position = place.position.0,
            item = place.item,
            attempt = place.attempt,
        )
    }

    /// Calls user code inside the scope and the span. The error is what a panic said.
    fn inside<T>(&self, span: &Span, call: impl FnOnce() -> T) -> Result<T, String> {
        let _entered = span.enter();
        let called = self.scope.clone().call(|| catch_unwind(AssertUnwindSafe(call)));
        called.map_err(|panic| words(&*panic))
    }

    fn poll<T>(
        &self,
        span: &Span,
        body: &mut BoxFuture<Result<T, StepError>>,
        watch: &mut Option<Watch>,
        due: Option<Instant>,
        task: &mut Context<'_>,
    ) -> Poll<Result<Result<T, StepError>, GivenUp>> {
        let stop = &self.core.stop;
        let polled = match stop.is_cancelled() {
            true => Ok(Poll::Pending),
            false => self.inside(span, || body.as_mut().poll(task)),
        };
        let waits = matches!(polled, Ok(Poll::Pending));
        // Checked first: no default may stand in for an answer.
        if self.core.has_asked(self.scope.place, waits.then(|| task.waker())) {
            return Poll::Ready(Err(GivenUp::Asked));
        }
        // What a step returns after a cancel is discarded.
        if stop.is_cancelled() {
            return Poll::Ready(Err(GivenUp::Cancelled));
        }
        match polled {
            Ok(Poll::Ready(result)) => return Poll::Ready(Ok(result)),
            Err(panic) => return Poll::Ready(Ok(Err(panicked(&panic)))),
            Ok(Poll::Pending) => {}
        }
        let sleep = |at: Option<Instant>| at.map(|at| Box::pin(sleep_until(at)));
        let watch = watch.get_or_insert_with(|| Watch {
            cancelled: Box::pin(stop.cancelling().clone().cancelled_owned()),
            timeout: sleep(due),
            wall: sleep(self.wall),
        });
        let over = |timer: &mut Option<Pin<Box<Sleep>>>, task: &mut Context<'_>| {
            timer.as_mut().is_some_and(|timer| timer.as_mut().poll(task).is_ready())
        };
        if watch.cancelled.as_mut().poll(task).is_ready() {
            return Poll::Ready(Err(GivenUp::Cancelled));
        }
        if over(&mut watch.wall, task) {
            return Poll::Ready(Err(GivenUp::OutOfTime));
        }
        if over(&mut watch.timeout, task) {
            return Poll::Ready(Err(GivenUp::TimedOut));
        }
        Poll::Pending
    }
}

fn panicked(said: &str) -> StepError {
    StepError::of(FailureKind::Panic, false, format!("the step panicked: {said}"))
}
