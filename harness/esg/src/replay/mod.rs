//! Replay: program order, verified traces, and one mechanism for unserializable values.
//!
//! A replay processes the steps in order. If one of a step's latest executions is valid in the
//! state so far, the step is *kept* and its outputs are applied. Any other step runs, on exactly
//! that state. Its outputs are compared with its earlier ones, and equal objects stay the same, so
//! that its readers are kept. A step that fails does not change the state.
//!
//! If a step needs an unserializable value, the steps that made it run again first, from the
//! earliest on: the pass starts again with those steps forced. Each pass forces more steps than the
//! one before, so this terminates.
//!
//! `pass` decides what comes next, and is pure; `engine` does it.
mod engine;
mod live;
mod looked;
mod need;
mod pass;
mod reason;
mod report;
mod step;

pub(crate) use engine::Engine;
pub(crate) use looked::Outside;
pub(crate) use need::{close, need};
pub use reason::Reason;
pub use report::{Blocked, Report};
pub(crate) use step::{Options, Planned};
