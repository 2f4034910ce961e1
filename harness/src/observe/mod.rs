//! Watching runs: typed events, observers, and the scope of the step at work.
//!
//! A run never waits for an observer while it runs and cannot be hurt by one: every observer gets
//! the events in order on a thread of its own. One that panics loses that event and no other; one
//! that blocks is left behind. When a run settles it waits a moment (at most a second) for its
//! observers to catch up, so that what they gathered is there when the outcome is.
//!
//! Events that tell of results ([`Committed`](EventKind::Committed) and those after it) follow the
//! commit and never precede it. All others are live: a step that is tried again emits them again,
//! under a new attempt.

mod event;
mod fanout;
mod observer;
mod queue;
mod recorder;
mod stream;
#[cfg(feature = "terminal")]
mod terminal;

pub use crate::session::End;
pub use crate::step::{Payload, Scope, Scoped, current};
pub use event::{Event, EventKind};
pub use observer::{FromFn, Observer, from_fn};
pub use recorder::Recorder;
pub use stream::{Events, Streamed};
#[cfg(feature = "terminal")]
pub use terminal::Terminal;

pub(crate) use fanout::{Fanout, Observers};
pub(crate) use stream::stream;
