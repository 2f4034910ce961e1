//! Futures that are never dropped half-way.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::step::BoxFuture;

/// Runs a future to its end even if whoever awaits it goes away: once it was begun, dropping this
/// hands it to the runtime instead of dropping it half-way.
pub(super) fn to_its_end<T: Send + 'static>(future: BoxFuture<T>) -> ToItsEnd<T> {
    ToItsEnd { future: Some(future), begun: false }
}

pub(super) struct ToItsEnd<T: Send + 'static> {
    future: Option<BoxFuture<T>>,
    begun: bool,
}

impl<T: Send + 'static> Future for ToItsEnd<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<T> {
        self.begun = true;
        let Some(future) = &mut self.future else { return Poll::Pending };
        let polled = future.as_mut().poll(task);
        if polled.is_ready() {
            self.future = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for ToItsEnd<T> {
    fn drop(&mut self) {
        if let Some(future) = self.future.take().filter(|_| self.begun)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(future);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn what_was_begun_ends_though_nobody_waits_for_it() {
        let (go, gone) = oneshot::channel::<()>();
        let (tell, told) = oneshot::channel();
        let mut begun = to_its_end(Box::pin(async move {
            gone.await.ok();
            tell.send(7).ok();
        }));
        let polled =
            std::future::poll_fn(|task| Poll::Ready(Pin::new(&mut begun).poll(task).is_pending()));
        assert!(polled.await);
        drop(begun);
        go.send(()).unwrap();
        assert_eq!(told.await, Ok(7));
    }

    #[tokio::test]
    async fn what_was_not_begun_does_not_begin() {
        let (tell, told) = oneshot::channel();
        drop(to_its_end(Box::pin(async move { tell.send(7) })));
        assert!(told.await.is_err());
    }
}
