use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::broadcast;

use super::queue::Feed;
use super::{Event, Observer};

/// The observers of a harness, an agent or a run.
#[derive(Clone, Default)]
pub(crate) struct Observers {
    feeds: Vec<Arc<Feed>>,
}

impl Observers {
    pub(crate) fn add(&mut self, observer: impl Observer) {
        self.feeds.push(Arc::new(Feed::new(observer)));
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Observers({})", self.feeds.len())
    }
}

/// Publishes a run's events to its observers and its stream, in one order.
pub(crate) struct Fanout(Option<Box<Audience>>);

/// The observers and the stream of a run that has any.
struct Audience {
    feeds: Vec<Arc<Feed>>,
    stream: Option<broadcast::Sender<Arc<Event>>>,
    /// The event counter. It is locked while an event is published, so all receivers see one order.
    count: Mutex<u64>,
}

impl Fanout {
    pub(crate) fn new(observers: Observers, stream: Option<broadcast::Sender<Arc<Event>>>) -> Self {
        let feeds = observers.feeds;
        let listened = !feeds.is_empty() || stream.is_some();
        Self(listened.then(|| Box::new(Audience { feeds, stream, count: Mutex::new(0) })))
    }

    /// Whether there are no receivers, so no event needs to be created.
    #[inline]
    pub(crate) fn is_silent(&self) -> bool {
        self.0.is_none()
    }

    /// Creates an event with its number and publishes it.
    pub(crate) fn publish(&self, make: impl FnOnce(u64) -> Event) {
        let Some(audience) = &self.0 else { return };
        let mut count = audience.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        let event = Arc::new(make(*count));
        for feed in &audience.feeds {
            feed.feed(Arc::clone(&event));
        }
        if let Some(stream) = &audience.stream {
            // A stream without a reader is not an error.
            let _ = stream.send(event);
        }
    }

    /// Waits until every observer has handled every event or is stuck.
    pub(crate) async fn flush(&self) {
        for feed in self.0.iter().flat_map(|audience| &audience.feeds) {
            feed.flush().await;
        }
    }
}
