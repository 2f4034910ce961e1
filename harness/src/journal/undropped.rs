//! Futures that are never dropped half-way.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;

/// Runs a future to its end even if the caller is dropped: once the future was polled, dropping
/// this moves it to the runtime instead.
pub(super) fn undropped<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> Undropped<T> {
    Undropped { future: Some(Box::pin(future)), begun: false }
}

pub(super) struct Undropped<T: Send + 'static> {
    future: Option<BoxFuture<'static, T>>,
    begun: bool,
}

impl<T: Send + 'static> Future for Undropped<T> {
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

impl<T: Send + 'static> Drop for Undropped<T> {
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
    async fn a_begun_future_ends_without_its_caller() {
        let (open, opened) = oneshot::channel::<()>();
        let (done, heard) = oneshot::channel();
        let mut begun = undropped(async move {
            opened.await.ok();
            done.send(7).ok();
        });
        let polled =
            std::future::poll_fn(|task| Poll::Ready(Pin::new(&mut begun).poll(task).is_pending()));
        assert!(polled.await);
        drop(begun);
        open.send(()).unwrap();
        assert_eq!(heard.await, Ok(7));
    }

    #[tokio::test]
    async fn a_future_that_was_not_polled_is_dropped() {
        let (done, heard) = oneshot::channel();
        drop(undropped(async move { done.send(7) }));
        assert!(heard.await.is_err());
    }
}
