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

/// The stream of a run's events.
#[derive(Clone)]
pub(crate) struct Outlet {
    pub(crate) sender: broadcast::Sender<Arc<Event>>,
    /// Whether tokens are a part of it.
    pub(crate) tokens: bool,
}

/// The observers and the stream of a run that has any.
struct Audience {
    feeds: Vec<Arc<Feed>>,
    stream: Option<Outlet>,
    /// The event counter. It is locked while an event is published, so all receivers see one order.
    count: Mutex<u64>,
}

impl Fanout {
    pub(crate) fn new(observers: Observers, stream: Option<Outlet>) -> Self {
        let feeds = observers.feeds;
        let listened = !feeds.is_empty() || stream.is_some();
        Self(listened.then(|| Box::new(Audience { feeds, stream, count: Mutex::new(0) })))
    }

    /// The receivers of another run get the events, too.
    pub(crate) fn join(&mut self, other: &Self) {
        let Some(other) = &other.0 else { return };
        let own = self.0.get_or_insert_with(|| {
            Box::new(Audience { feeds: Vec::new(), stream: None, count: Mutex::new(0) })
        });
        for feed in &other.feeds {
            if !own.feeds.iter().any(|known| Arc::ptr_eq(known, feed)) {
                own.feeds.push(Arc::clone(feed));
            }
        }
        if own.stream.is_none() {
            own.stream.clone_from(&other.stream);
        }
    }

    /// Whether there are no receivers, so no event needs to be created.
    #[inline]
    pub(crate) fn is_silent(&self) -> bool {
        self.0.is_none()
    }

    /// Whether any receiver wants the parts of replies.
    pub(crate) fn wants_tokens(&self) -> bool {
        let Some(audience) = &self.0 else { return false };
        audience.stream.as_ref().is_some_and(|stream| stream.tokens)
            || audience.feeds.iter().any(|feed| feed.wants_tokens())
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
            let _ = stream.sender.send(event);
        }
    }

    /// Creates a token event and publishes it to those that want tokens. It does not count, so that
    /// the others see every number.
    pub(crate) fn publish_token(&self, make: impl FnOnce(u64) -> Event) {
        let Some(audience) = &self.0 else { return };
        let count = audience.count.lock().unwrap_or_else(PoisonError::into_inner);
        let event = Arc::new(make(*count));
        for feed in audience.feeds.iter().filter(|feed| feed.wants_tokens()) {
            feed.feed(Arc::clone(&event));
        }
        if let Some(stream) = audience.stream.as_ref().filter(|stream| stream.tokens) {
            let _ = stream.sender.send(event);
        }
    }

    /// Waits until every observer has handled every event or is stuck.
    pub(crate) async fn flush(&self) {
        for feed in self.0.iter().flat_map(|audience| &audience.feeds) {
            feed.flush().await;
        }
    }
}
