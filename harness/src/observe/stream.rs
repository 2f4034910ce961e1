use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender, channel};
use tokio_util::sync::ReusableBoxFuture;

use super::Event;

/// How many events a slow reader may have pending before it misses the oldest.
const CAPACITY: usize = 1024;

pub(crate) fn stream() -> (Sender<Arc<Event>>, Receiver<Arc<Event>>) {
    channel(CAPACITY)
}

/// A bounded stream of a run's events, from [`Run::events`](crate::Run::events). A slow reader does
/// not slow the run down: it misses events, and the stream reports how many.
#[derive(Debug)]
pub struct Events {
    next: ReusableBoxFuture<'static, (Result<Arc<Event>, RecvError>, Receiver<Arc<Event>>)>,
}

/// An item of an event stream.
#[derive(Clone, Debug)]
pub enum Streamed {
    /// The next event.
    Event(Arc<Event>),
    /// The reader was too slow and missed this many events.
    Missed(u64),
}

async fn receive(
    mut from: Receiver<Arc<Event>>,
) -> (Result<Arc<Event>, RecvError>, Receiver<Arc<Event>>) {
    (from.recv().await, from)
}

impl Events {
    pub(crate) fn new(from: Receiver<Arc<Event>>) -> Self {
        Self { next: ReusableBoxFuture::new(receive(from)) }
    }

    /// The next event. `None` after the run has ended and everything was read.
    pub async fn next(&mut self) -> Option<Streamed> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl Stream for Events {
    type Item = Streamed;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Streamed>> {
        let (received, from) = std::task::ready!(self.next.poll(cx));
        self.next.set(receive(from));
        Poll::Ready(match received {
            Ok(event) => Some(Streamed::Event(event)),
            Err(RecvError::Lagged(missed)) => Some(Streamed::Missed(missed)),
            Err(RecvError::Closed) => None,
        })
    }
}
