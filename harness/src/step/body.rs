//! Step bodies with their types erased, and the room they work in.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll};

use pin_project_lite::pin_project;

use crate::context::Context;
use crate::state::State;

use super::{Cx, StepError, StepResult, View};

/// A future with its type erased.
pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A body at work: its future, wherever it is kept.
pub(crate) trait AtWork<T>: Send {
    fn poll(&mut self, task: &mut Task<'_>) -> Poll<Result<T, StepError>>;
}

/// The body of a step: makes rooms for itself to work in.
pub(crate) trait Body<C: Context, S: State>: Send + Sync {
    fn room(&self) -> BoxRoom<C, S>;
}

/// Where the futures of one body are kept, one after the other: a loop that comes back to a step
/// allocates nothing for it.
pub(crate) trait Room<C: Context, S: State>: Send {
    /// Makes the body's future and polls it once. A future that is done is dropped at once, and
    /// with it whatever it holds.
    fn start(
        self: Pin<&mut Self>,
        state: View<S>,
        cx: Cx<C>,
        task: &mut Task<'_>,
    ) -> Poll<StepResult<S>>;

    /// Polls the future that was started last.
    fn poll(self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<StepResult<S>>;
}

/// A room, wherever it was made.
pub(crate) type BoxRoom<C, S> = Pin<Box<dyn Room<C, S>>>;

/// A body that is a function.
pub(super) struct FnBody<F>(Arc<F>);

impl<F> FnBody<F> {
    pub(super) fn new(body: F) -> Self {
        Self(Arc::new(body))
    }
}

impl<C, S, F, Fut> Body<C, S> for FnBody<F>
where
    C: Context,
    S: State,
    F: Fn(View<S>, Cx<C>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = StepResult<S>> + Send + 'static,
{
    fn room(&self) -> BoxRoom<C, S> {
        Box::pin(FnRoom { body: Arc::clone(&self.0), future: None })
    }
}

pin_project! {
    struct FnRoom<F, Fut> {
        body: Arc<F>,
        #[pin]
        future: Option<Fut>,
    }
}

impl<C, S, F, Fut> Room<C, S> for FnRoom<F, Fut>
where
    C: Context,
    S: State,
    F: Fn(View<S>, Cx<C>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = StepResult<S>> + Send + 'static,
{
    fn start(
        self: Pin<&mut Self>,
        state: View<S>,
        cx: Cx<C>,
        task: &mut Task<'_>,
    ) -> Poll<StepResult<S>> {
        let mut room = self.project();
        room.future.set(Some((room.body)(state, cx)));
        poll_and_drop(room.future, task)
    }

    fn poll(self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<StepResult<S>> {
        poll_and_drop(self.project().future, task)
    }
}

#[inline]
fn poll_and_drop<Fut: Future>(
    mut future: Pin<&mut Option<Fut>>,
    task: &mut Task<'_>,
) -> Poll<Fut::Output> {
    let Some(working) = future.as_mut().as_pin_mut() else {
        return Poll::Pending;
    };
    let polled = working.poll(task);
    if polled.is_ready() {
        future.set(None);
    }
    polled
}

/// A body that works in a box of its own.
pub(crate) struct Boxed<T>(pub(crate) Option<BoxFuture<Result<T, StepError>>>);

impl<T> AtWork<T> for Boxed<T> {
    fn poll(&mut self, task: &mut Task<'_>) -> Poll<Result<T, StepError>> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        let polled = future.as_mut().poll(task);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

/// A body that is done already.
pub(crate) struct Finished<T>(pub(crate) Option<Result<T, StepError>>);

impl<T: Send> AtWork<T> for Finished<T> {
    fn poll(&mut self, _: &mut Task<'_>) -> Poll<Result<T, StepError>> {
        self.0.take().map_or(Poll::Pending, Poll::Ready)
    }
}
