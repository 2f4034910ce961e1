//! Work that is never dropped half-way, whatever becomes of the runtime that began it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;

use super::renewer;

/// Runs `work` to its end: on the runtime at hand, and on the lease thread if there is none, or if it
/// shuts down meanwhile.
pub(crate) fn in_background(work: impl Future<Output = ()> + Send + 'static) {
    let work = Background { work: Some(Box::pin(work)) };
    match tokio::runtime::Handle::try_current() {
        // A runtime that is shutting down drops it here.
        Ok(runtime) => drop(runtime.spawn(work)),
        Err(_) => drop(work),
    }
}

struct Background {
    work: Option<BoxFuture<'static, ()>>,
}

impl Future for Background {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()> {
        // Work that panics is not begun again elsewhere.
        let Some(mut work) = self.work.take() else { return Poll::Ready(()) };
        let polled = work.as_mut().poll(task);
        if polled.is_pending() {
            self.work = Some(work);
        }
        polled
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            renewer::spawn(work);
        }
    }
}

/// Runs a future to its end even if the caller is dropped: once the future was polled, dropping
/// this continues it in the background instead.
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
        if let Some(future) = self.future.take().filter(|_| self.begun) {
            in_background(async move { drop(future.await) });
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

    /// The runtime ends, before the work begins or while it waits; or there was none.
    #[test]
    fn work_in_the_background_outlives_its_runtime() {
        for polled in [Some(true), Some(false), None] {
            let (open, opened) = oneshot::channel::<()>();
            let (done, heard) = std::sync::mpsc::channel();
            let work = async move {
                opened.await.ok();
                done.send(7).ok();
            };
            match polled {
                Some(polled) => {
                    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                    runtime.block_on(async move {
                        in_background(work);
                        if polled {
                            tokio::task::yield_now().await;
                        }
                    });
                }
                None => in_background(work),
            }
            open.send(()).unwrap();
            assert_eq!(heard.recv(), Ok(7), "{polled:?}");
        }
    }

    #[tokio::test]
    async fn a_future_that_was_not_polled_is_dropped() {
        let (done, heard) = oneshot::channel();
        drop(undropped(async move { done.send(7) }));
        assert!(heard.await.is_err());
    }
}
