//! Watching runs: typed events, observers, and streams of events.
//!
//! An observer cannot delay or fail a run. Each observer receives the events in order on its own
//! thread. If it panics, only that event is lost. If it blocks, its events queue up, and after too
//! many it receives no more. A run that settles waits at most a second for its observers, so that
//! their results are usually complete when the outcome is returned.
//!
//! Events about results ([`Committed`](EventKind::Committed) and those after it) follow the commit
//! and never precede it. All others are live: a retried step emits them again, with a new attempt
//! number.
//!
//! The parts of the replies of models are [`Token`](EventKind::Token) events, for observers that
//! [want tokens](Observer::wants_tokens). Model calls of a step stream if there is one.

mod display;
mod event;
mod fanout;
mod json_lines;
mod observer;
mod queue;
mod recorder;
mod stream;
#[cfg(feature = "terminal")]
mod terminal;
pub mod trace;

pub use crate::session::End;
pub use crate::step::{Payload, Scope, Scoped, current};
pub use event::{Cause, ChildRun, Event, EventKind, ParentStep};
pub use json_lines::JsonLines;
pub use observer::{FromFn, Observer, from_fn};
pub use recorder::Recorder;
pub use stream::{Events, Streamed};
#[cfg(feature = "terminal")]
pub use terminal::Terminal;

pub(crate) use fanout::{Fanout, Observers, Outlet};
pub(crate) use stream::stream;
