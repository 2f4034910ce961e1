//! One attempt at a step, or at an item of one: polls its body inside the step's scope and span,
//! contains its panics, and gives up on it when something else comes first.

use std::future::{Future as _, poll_fn};
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::lazy;
use tokio::time::{Instant, Sleep, sleep_until};
use tracing::Span;

use crate::step::{BoxFuture, FailureKind, Place, RunScope, StepError};
use crate::text::words;

use super::core::RunCore;
use super::slots::{StaysOpen, Work};

/// How an attempt ended.
pub(super) enum Ended<T> {
    Done(T),
    Failed(StepError),
    /// It waits for answers, and nothing else that it returned counts; or for timers or children.
    Awaits(Box<Work>),
    Cancelled,
    /// The wall budget was used up.
    OutOfTime,
}

impl<T> Ended<T> {
    fn of(result: Result<T, StepError>) -> Self {
        match result {
            Ok(value) => Self::Done(value),
            Err(error) => Self::Failed(error),
        }
    }
}

/// An attempt that is about to begin. `K` is a reference to the core, or a share of it.
pub(super) struct Attempt<K> {
    pub(super) core: K,
    pub(super) place: Place,
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
    Awaits,
    Cancelled,
    OutOfTime,
    TimedOut,
}

/// How an attempt began: its body was made and polled once.
pub(super) enum Begun<T> {
    /// It is over. Most are.
    Ended(Ended<T>),
    Unfinished(Box<Unfinished<T>>),
}

/// What is left to do of an attempt that is not over at once.
pub(super) struct Unfinished<T> {
    /// `None` if only effects of the attempt are not over.
    body: Option<BoxFuture<Result<T, StepError>>>,
    /// What came of the body, if it is over.
    polled: Option<Polled<T>>,
    /// The body is polled inside of it.
    span: Span,
    /// When the step's timeout is over.
    due: Option<Instant>,
    /// Whether the body wakes the task that polls it next.
    wakes: bool,
}

impl<T> Unfinished<T> {
    /// Another task polls it from here on.
    pub(super) fn moved(mut self: Box<Self>) -> Box<Self> {
        self.wakes = false;
        self
    }
}

impl<K: Deref<Target = RunCore>> Attempt<K> {
    /// Opens the slot, makes the body, polls it to its end, and waits for the effects it has begun.
    pub(super) async fn run<T>(
        self,
        make: impl FnOnce() -> BoxFuture<Result<T, StepError>>,
    ) -> Ended<T> {
        self.core.enter(self.place);
        match lazy(|task| self.begin(task, make)).await {
            Begun::Ended(ended) => ended,
            Begun::Unfinished(unfinished) => Box::pin(self.end(unfinished)).await,
        }
    }

    /// Makes the body and polls it once, in a slot that is open. One that is done is dropped at once.
    pub(super) fn begin<T>(
        &self,
        task: &mut Context<'_>,
        make: impl FnOnce() -> BoxFuture<Result<T, StepError>>,
    ) -> Begun<T> {
        let place = self.place;
        let span = self.span(place);
        let due = self.timeout.and_then(|limit| Instant::now().checked_add(limit));
        if let Some(first) = due.into_iter().chain(self.wall).min() {
            self.core.set_due(place, first);
        }
        let polled = self.inside(&span, || {
            let mut body = make();
            match body.as_mut().poll(task) {
                Poll::Ready(result) => Ok(result),
                Poll::Pending => Err(body),
            }
        });
        let result = match polled {
            Ok(Ok(result)) => result,
            Ok(Err(body)) => {
                let (body, polled) = (Some(body), None);
                let unfinished = Unfinished { body, polled, span, due, wakes: true };
                return Begun::Unfinished(Box::new(unfinished));
            }
            Err(panic) => Err(panicked(&panic)),
        };
        match self.core.try_close(place) {
            Ok(Some(work)) if work.has_asked() => Begun::Ended(Ended::Awaits(work)),
            Ok(_) if self.core.stop.is_cancelled() => Begun::Ended(Ended::Cancelled),
            Ok(_) => Begun::Ended(Ended::of(result)),
            Err(StaysOpen) => {
                let (body, polled) =
                    (None, Some(self.given_up(place, None).map_or(Ok(result), Err)));
                Begun::Unfinished(Box::new(Unfinished { body, polled, span, due, wakes: true }))
            }
        }
    }

    /// Brings an attempt to its end that was not over at once.
    pub(super) async fn end<T>(self, mut unfinished: Box<Unfinished<T>>) -> Ended<T> {
        if unfinished.body.is_some() {
            self.wait(&mut unfinished).await;
        }
        let polled = unfinished.polled.unwrap_or(Err(GivenUp::Cancelled));
        let work = self.core.close(self.place).await;
        match polled {
            Ok(result) => Ended::of(result),
            Err(GivenUp::Awaits) => Ended::Awaits(work.unwrap_or_default()),
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
        self.core.spans.as_ref().map_or_else(Span::none, |spans| spans.step(place))
    }

    /// Calls user code inside the scope and the span. The error is what a panic said.
    fn inside<T>(&self, span: &Span, call: impl FnOnce() -> T) -> Result<T, String> {
        let _entered = span.enter();
        let called = RunScope::at(self.place, || catch_unwind(AssertUnwindSafe(call)));
        called.map_err(|panic| words(&*panic))
    }

    /// Polls a body that waits, until it ends or something else comes first.
    async fn wait<T>(&self, unfinished: &mut Unfinished<T>) {
        let Unfinished { body, polled, span, due, wakes } = unfinished;
        let sleep = |at: Option<Instant>| at.map(|at| Box::pin(sleep_until(at)));
        let mut watch = Watch { timeout: sleep(*due), wall: sleep(self.wall) };
        let ended = poll_fn(|task| {
            let skip = std::mem::take(wakes) || self.core.stop.is_cancelled();
            let polled = match body {
                Some(body) if !skip => self.inside(span, || body.as_mut().poll(task)),
                _ => Ok(Poll::Pending),
            };
            self.over(polled, &mut watch, task)
        });
        *polled = Some(ended.await);
        if matches!(polled, Some(Err(why)) if !matches!(why, GivenUp::Awaits)) {
            self.core.cancel_children(Some(self.place));
        }
        self.core.effects_of(self.place).await;
        let body = body.take();
        if let Err(panic) = self.inside(span, move || drop(body)) {
            match polled {
                Some(Ok(_)) => *polled = Some(Ok(Err(panicked(&panic)))),
                // A body that is given up may panic: that changes nothing.
                _ => tracing::error!(panic, "a step panicked while it was dropped"),
            }
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
        if let Some(given_up) = self.given_up(self.place, waits.then(|| task.waker())) {
            return Poll::Ready(Err(given_up));
        }
        match polled {
            Ok(Poll::Ready(result)) => return Poll::Ready(Ok(result)),
            Err(panic) => return Poll::Ready(Ok(Err(panicked(&panic)))),
            // What else the step could do it does in effects.
            Ok(Poll::Pending) if self.core.sleeps(self.place) => {
                return Poll::Ready(Err(GivenUp::Awaits));
            }
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
            return Some(GivenUp::Awaits);
        }
        // What a step returns after a cancel is discarded.
        self.core.stop.is_cancelled().then_some(GivenUp::Cancelled)
    }
}

fn panicked(said: &str) -> StepError {
    StepError::of(FailureKind::Panic, false, format!("the step panicked: {said}"))
}
