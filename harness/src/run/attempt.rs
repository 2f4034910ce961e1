//! One attempt at a step: polls its body inside the step's scope and span, contains its panics, and
//! gives up on it when something else comes first.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::{Sleep, sleep_until};

use crate::step::{Active, AtWork, StepError};
use crate::text::words;

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

/// A body at work, until it ends or something else comes first.
pub(super) struct Attempt<W> {
    work: W,
    /// Whether the first poll was made already.
    polled: bool,
    entered: Entered,
    scope: Option<Active>,
    core: Arc<RunCore>,
    /// Made when the body first has to wait, where there is a deadline.
    timers: Option<Box<Timers>>,
}

struct Timers {
    timeout: Option<Pin<Box<Sleep>>>,
    wall: Option<Pin<Box<Sleep>>>,
}

impl<W> Attempt<W> {
    pub(super) fn new(
        begun: Begun<W>,
        entered: Entered,
        scope: Option<Active>,
        core: Arc<RunCore>,
    ) -> Self {
        let Begun { work, polled } = begun;
        Self { work, polled, entered, scope, core, timers: None }
    }

    /// Gives back what the body works in, if the body is `through`, and the scope. A body that is
    /// not is dropped inside its scope; a panic there changes nothing.
    pub(super) fn end(self, through: bool) -> (Option<W>, Option<Active>) {
        let Self { work, mut scope, .. } = self;
        if through {
            return (Some(work), scope);
        }
        let dropped =
            Active::enter(&mut scope, || catch_unwind(AssertUnwindSafe(move || drop(work))));
        if let Err(panic) = dropped {
            tracing::error!(panic = words(&*panic), "a step panicked while it was dropped");
        }
        (None, scope)
    }

    /// What the body itself says.
    fn poll_body<T>(&mut self, task: &mut Context<'_>) -> Option<Polled<T>>
    where
        W: AtWork<T>,
    {
        if std::mem::replace(&mut self.polled, false) {
            return None;
        }
        let (work, span) = (&mut self.work, &self.entered.span);
        let polled = Active::enter(&mut self.scope, || {
            let _entered = span.enter();
            catch_unwind(AssertUnwindSafe(|| work.poll(task)))
        });
        match polled {
            Ok(Poll::Ready(result)) => Some(Polled::Ready(result)),
            Ok(Poll::Pending) => None,
            Err(panic) => Some(Polled::Panicked(words(&*panic))),
        }
    }

    /// Polls the body, and whatever else may end its attempt.
    pub(super) fn poll<T>(&mut self, task: &mut Context<'_>) -> Poll<Polled<T>>
    where
        W: AtWork<T>,
    {
        let cancelled = self.core.brakes.is_cancelled();
        let ended = if cancelled { None } else { self.poll_body(task) };
        self.core.brakes.register(task.waker());
        // Asked first: no default may stand in for an answer.
        if self.core.has_asked(self.entered.place) {
            return Poll::Ready(Polled::Asked);
        }
        // What a step returns after a cancel is discarded, even if it heard of the cancel first.
        if self.core.brakes.is_cancelled() {
            return Poll::Ready(Polled::Cancelled);
        }
        if let Some(ended) = ended {
            return Poll::Ready(ended);
        }
        let Entered { timeout, wall, .. } = self.entered;
        if timeout.is_none() && wall.is_none() {
            return Poll::Pending;
        }
        let timers = self.timers.get_or_insert_with(|| {
            Box::new(Timers {
                timeout: timeout.map(|at| Box::pin(sleep_until(at))),
                wall: wall.map(|at| Box::pin(sleep_until(at))),
            })
        });
        let mut over = |timer: &mut Option<Pin<Box<Sleep>>>| {
            timer.as_mut().is_some_and(|timer| timer.as_mut().poll(task).is_ready())
        };
        if over(&mut timers.wall) {
            return Poll::Ready(Polled::OutOfTime);
        }
        if over(&mut timers.timeout) {
            return Poll::Ready(Polled::TimedOut);
        }
        Poll::Pending
    }
}
