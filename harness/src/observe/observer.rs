use std::fmt;
use std::sync::Arc;

use super::Event;

/// Receives the events of runs. Pass one to `.observe(..)` of a harness, an agent or a run.
///
/// Every event of a run arrives, in order, on the observer's own thread. An observer that panics or
/// blocks does not affect the run: see the [module](crate::observe).
pub trait Observer: Send + Sync + 'static {
    /// Handles one event.
    fn on_event(&self, event: &Event);

    /// Whether it also receives [`Token`](super::EventKind::Token) events, the parts of the replies of
    /// models. They are many, so by default it does not.
    fn wants_tokens(&self) -> bool {
        false
    }
}

impl<O: Observer + ?Sized> Observer for Arc<O> {
    fn on_event(&self, event: &Event) {
        (**self).on_event(event);
    }

    fn wants_tokens(&self) -> bool {
        (**self).wants_tokens()
    }
}

impl<O: Observer + ?Sized> Observer for Box<O> {
    fn on_event(&self, event: &Event) {
        (**self).on_event(event);
    }

    fn wants_tokens(&self) -> bool {
        (**self).wants_tokens()
    }
}

/// An observer that calls a function. Created by [`from_fn`].
pub struct FromFn<F> {
    on_event: F,
    tokens: bool,
}

impl<F> FromFn<F> {
    /// Receives [`Token`](super::EventKind::Token) events too.
    ///
    /// ```
    /// use harness::llm::Delta;
    /// use harness::observe::{self, EventKind};
    ///
    /// let live = observe::from_fn(|event| {
    ///     if let EventKind::Token { delta: Delta::Text(text), .. } = &event.kind {
    ///         print!("{text}");
    ///     }
    /// })
    /// .with_tokens();
    /// # let _ = live;
    /// ```
    #[must_use]
    pub fn with_tokens(mut self) -> Self {
        self.tokens = true;
        self
    }
}

/// Creates an observer from a function.
///
/// ```
/// use harness::observe;
///
/// let log = observe::from_fn(|event| eprintln!("{event}"));
/// # let _ = log;
/// ```
pub fn from_fn<F: Fn(&Event) + Send + Sync + 'static>(on_event: F) -> FromFn<F> {
    FromFn { on_event, tokens: false }
}

impl<F: Fn(&Event) + Send + Sync + 'static> Observer for FromFn<F> {
    fn on_event(&self, event: &Event) {
        (self.on_event)(event);
    }

    fn wants_tokens(&self) -> bool {
        self.tokens
    }
}

impl<F> fmt::Debug for FromFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FromFn")
    }
}
