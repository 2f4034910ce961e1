//! One attempt at a step, or at an item of one: polls its body inside the step's scope and span,
//! contains its panics, and gives up on it when something else comes first.

use std::future::{Future as _, poll_fn};
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};
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

/// An attempt that is about to begin. `K` is a reference to the core, or a share of it.
pub(super) struct Attempt<K> {
    pub(super) core: K,
    pub(super) scope: Scope,
    pub(super) timeout: Option<Duration>,
    /// When the wall budget is used up.
    pub(super) wall: Option<Instant>,
}

/// What may end an attempt other than its body; made when the body first waits.
struct Watch {
    timeout: Option<Pin<Box<Sleep>>>,
    wall: Option<Pin<Box<Sleep>>>,
}

/// How polling a body ended.
type Polled<T> = Result<Result<T, StepError>, GivenUp>;

/// Why a body is given up.
enum GivenUp {
    Asked,
    Cancelled,
    OutOfTime,
    TimedOut,
}

/// The first poll of a body, which is the only one of most.
enum First<T> {
    Done(Result<T, StepError>),
    Waits(BoxFuture<Result<T, StepError>>),
}

impl<K: Deref<Target = RunCore>> Attempt<K> {
    /// Makes the body, polls it to its end, and waits for the effects it has begun.
    pub(super) async fn run<T>(
        self,
        make: impl FnOnce() -> BoxFuture<Result<T, StepError>>,
    ) -> Ended<T> {
        let place = self.scope.place;
        self.core.enter(place);
        let span = self.span(place);
        let due = self.timeout.map(|limit| Instant::now() + limit);
        let polled = match self.first_poll(&span, make).await {
            Ok(First::Done(result)) => match self.core.try_close(place) {
                // It has asked nothing, and no effect of it is running.
                Some(asked) if asked.is_empty() && !self.core.stop.is_cancelled() => {
                    return Self::ended(result);
                }
                Some(asked) if !asked.is_empty() => return Ended::Asked(asked),
                Some(_) => return Ended::Cancelled,
                None => self.given_up(place, None).map_or(Ok(result), Err),
            },
            Ok(First::Waits(body)) => self.wait(&span, body, due).await,
            Err(panic) => {
                let panicked = Ok(Err(panicked(&panic)));
                self.given_up(place, None).map_or(panicked, Err)
            }
        };
        let asked = self.core.close(place).await;
        match polled {
            Ok(result) => Self::ended(result),
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

    fn ended<T>(result: Result<T, StepError>) -> Ended<T> {
        match result {
            Ok(value) => Ended::Done(value),
            Err(error) => Ended::Failed(error),
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

    /// Makes the body and polls it once. One that is done is dropped at once.
    async fn first_poll<T>(
        &self,
        span: &Span,
        make: impl FnOnce() -> BoxFuture<Result<T, StepError>>,
    ) -> Result<First<T>, String> {
        let mut make = Some(make);
        poll_fn(|task| {
            let Some(make) = make.take() else { return Poll::Pending };
            Poll::Ready(self.inside(span, || {
                let mut body = make();
                match body.as_mut().poll(task) {
                    Poll::Ready(result) => First::Done(result),
                    Poll::Pending => First::Waits(body),
                }
            }))
        })
        .await
    }

    /// Polls a body that waits, until it ends or something else comes first.
    async fn wait<T>(
        &self,
        span: &Span,
        mut body: BoxFuture<Result<T, StepError>>,
        due: Option<Instant>,
    ) -> Polled<T> {
        let sleep = |at: Option<Instant>| at.map(|at| Box::pin(sleep_until(at)));
        let mut watch = Watch { timeout: sleep(due), wall: sleep(self.wall) };
        // It was polled once, by the same task.
        let mut polled_before = true;
        let ended = poll_fn(|task| {
            let skip = std::mem::take(&mut polled_before) || self.core.stop.is_cancelled();
            let polled = match skip {
                true => Ok(Poll::Pending),
                false => self.inside(span, || body.as_mut().poll(task)),
            };
            self.over(polled, &mut watch, task)
        });
        let ended = ended.await;
        self.core.effects_of(self.scope.place).await;
        match (self.inside(span, move || drop(body)), ended) {
            (Err(panic), Ok(_)) => Ok(Err(panicked(&panic))),
            // A body that is given up may panic: that changes nothing.
            (Err(panic), given_up) => {
                tracing::error!(panic, "a step panicked while it was dropped");
                given_up
            }
            (Ok(()), ended) => ended,
        }
    }

    /// Whether the attempt is over, by what its body says or by something else.
    fn over<T>(
        &self,
        polled: Result<Poll<Result<T, StepError>>, String>,
        watch: &mut Watch,
        task: &mut Context<'_>,
    ) -> Poll<Polled<T>> {
        let waits = matches!(polled, Ok(Poll::Pending));
        if let Some(given_up) = self.given_up(self.scope.place, waits.then(|| task.waker())) {
            return Poll::Ready(Err(given_up));
        }
        match polled {
            Ok(Poll::Ready(result)) => return Poll::Ready(Ok(result)),
            Err(panic) => return Poll::Ready(Ok(Err(panicked(&panic)))),
            Ok(Poll::Pending) => {}
        }
        let mut over = |timer: &mut Option<Pin<Box<Sleep>>>| {
            timer.as_mut().is_some_and(|timer| timer.as_mut().poll(task).is_ready())
        };
        if over(&mut watch.wall) {
            return Poll::Ready(Err(GivenUp::OutOfTime));
        }
        if over(&mut watch.timeout) {
            return Poll::Ready(Err(GivenUp::TimedOut));
        }
        Poll::Pending
    }

    /// Why the attempt is given up, whatever its body returned. `waker` polls it again.
    fn given_up(&self, place: Place, waker: Option<&Waker>) -> Option<GivenUp> {
        // Checked first: no default may stand in for an answer.
        if self.core.has_asked(place, waker) {
            return Some(GivenUp::Asked);
        }
        // What a step returns after a cancel is discarded.
        self.core.stop.is_cancelled().then_some(GivenUp::Cancelled)
    }
}

fn panicked(said: &str) -> StepError {
    StepError::of(FailureKind::Panic, false, format!("the step panicked: {said}"))
}
