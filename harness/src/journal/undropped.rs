//! Work that is never dropped half-way, whatever becomes of the runtime that began it.
//!
//! What work waits for on its runtime, such as a timer or a connection, never comes once the runtime has
//! shut down. So work that may be done twice is begun again, on the lease thread, whose runtime lasts as
//! long as the process.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;

use super::renewer;

/// Makes work that may be done twice.
type Again = Box<dyn Fn() -> BoxFuture<'static, ()> + Send>;

/// Runs `work` to its end: on the runtime at hand, and on the lease thread if there is none, or if it
/// shuts down meanwhile. It waits for nothing of the runtime.
pub(crate) fn in_background(work: impl Future<Output = ()> + Send + 'static) {
    Background { work: Some(Box::pin(work)), again: None }.start();
}

/// The same for work that waits for the runtime. It may be done twice: a runtime that shuts down leaves
/// it to the lease thread, from its beginning.
pub(crate) fn in_background_again<F>(make: impl Fn() -> F + Send + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    let work: BoxFuture<'static, ()> = Box::pin(make());
    Background { work: Some(work), again: Some(Box::new(move || Box::pin(make()))) }.start();
}

struct Background {
    work: Option<BoxFuture<'static, ()>>,
    again: Option<Again>,
}

impl Background {
    fn start(self) {
        match tokio::runtime::Handle::try_current() {
            // A runtime that is shutting down drops it here.
            Ok(runtime) => drop(runtime.spawn(self)),
            Err(_) => drop(self),
        }
    }
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
            match &self.again {
                Some(make) => {
                    // What it holds, the new one may need.
                    drop(work);
                    renewer::spawn(make());
                }
                None => renewer::spawn(work),
            }
        }
    }
}

/// Runs a future to its end even if the caller is dropped: once the future was polled, dropping
/// this continues it in the background instead. It is not done twice, so it may wait indefinitely for a
/// runtime that has shut down.
pub(super) fn undropped<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> Undropped<T, Once<T>> {
    Undropped { future: Some(Box::pin(future)), again: None, begun: false }
}

/// The same for work that may be done twice. If the runtime of the caller shuts down, it is begun again.
pub(super) fn undropped_again<T, F, M>(make: M) -> Undropped<T, impl Fn() -> BoxFuture<'static, T>>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
    M: Fn() -> F + Send + Unpin + 'static,
{
    let future: BoxFuture<'static, T> = Box::pin(make());
    let again = move || -> BoxFuture<'static, T> { Box::pin(make()) };
    Undropped { future: Some(future), again: Some(again), begun: false }
}

/// Of work that is not begun again.
type Once<T> = fn() -> BoxFuture<'static, T>;

pub(super) struct Undropped<T, M>
where
    T: Send + 'static,
    M: Fn() -> BoxFuture<'static, T> + Send + Unpin + 'static,
{
    future: Option<BoxFuture<'static, T>>,
    again: Option<M>,
    begun: bool,
}

impl<T, M> Future for Undropped<T, M>
where
    T: Send + 'static,
    M: Fn() -> BoxFuture<'static, T> + Send + Unpin + 'static,
{
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

impl<T, M> Drop for Undropped<T, M>
where
    T: Send + 'static,
    M: Fn() -> BoxFuture<'static, T> + Send + Unpin + 'static,
{
    fn drop(&mut self) {
        let Some(future) = self.future.take().filter(|_| self.begun) else { return };
        let work: BoxFuture<'static, ()> = Box::pin(async move { drop(future.await) });
        let again = self.again.take().map(|make| -> Again {
            Box::new(move || {
                let work = make();
                Box::pin(async move { drop(work.await) })
            })
        });
        Background { work: Some(work), again }.start();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

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

    /// It waits for a timer of its runtime, which never comes.
    #[test]
    fn work_that_may_be_done_twice_is_begun_again_when_its_runtime_ends() {
        for called in [true, false] {
            let (done, heard) = std::sync::mpsc::channel();
            let begun = Arc::new(AtomicU32::new(0));
            let make = {
                let begun = Arc::clone(&begun);
                move || {
                    let (done, nth) = (done.clone(), begun.fetch_add(1, Ordering::SeqCst));
                    async move {
                        if nth == 0 {
                            tokio::time::sleep(Duration::from_secs(3_600)).await;
                        }
                        done.send(nth).ok();
                    }
                }
            };
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                match called {
                    true => drop(tokio::spawn(undropped_again(make))),
                    false => in_background_again(make),
                }
                tokio::task::yield_now().await;
            });
            drop(runtime);
            assert_eq!(heard.recv(), Ok(1), "{called}");
            assert_eq!(begun.load(Ordering::SeqCst), 2, "{called}");
        }
    }

    #[tokio::test]
    async fn a_future_that_was_not_polled_is_dropped() {
        let (done, heard) = oneshot::channel();
        drop(undropped(async move { done.send(7) }));
        assert!(heard.await.is_err());
    }
}
