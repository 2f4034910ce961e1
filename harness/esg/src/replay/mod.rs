//! Replay: program order, verifying traces, and one mechanism to restore.
//!
//! The steps are gone through in order. A step whose latest executions hold one that is valid in the
//! state so far is *kept*: its outputs are taken over. Any other is run, on exactly that state. What
//! it made is compared with what it made before, and equal things stay what they were, so that its
//! readers are kept. A step that fails leaves the state as it was.
//!
//! Where a step needs something that has no stored form, the steps that made it are run again first,
//! from the earliest on: the pass starts anew with those steps forced. Each pass forces more steps
//! than the one before, so there is an end.
mod engine;
mod history;
mod live;
mod looked;
mod need;
mod reason;
mod report;
mod step;

pub(crate) use engine::{Engine, Options, Told};
pub(crate) use history::History;
pub(crate) use looked::Outside;
pub(crate) use need::close;
pub use reason::Reason;
pub use report::{Blocked, Report};
pub(crate) use step::Planned;
