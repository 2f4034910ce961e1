//! Runs: what an agent is asked to do, and how it ends.
//!
//! A [`RunRequest`] is awaited, or [started](RunRequest::start) as a task with a [`Run`] as its handle.
//! A run advances one session until it settles, and its [`Outcome`] reports how. A [`RunError`] reports
//! that the run could not begin: then the session is unchanged.

// `transition` decides: a pure function of the graph, the cursor and how an attempt ended. `driver`
// acts: it enters a step, folds its update in place, calls the route, and commits the result. Events of
// a commit follow it. Most steps wait for nothing: plain functions run them, and only waiting is async.

mod attempt;
mod begin;
mod boundary;
mod breakpoints;
mod call;
mod call_error;
mod child;
mod commit;
mod conclusion;
mod core;
mod driver;
mod each;
mod effects;
mod elsewhere;
mod error;
mod handle;
mod input;
mod keys;
mod outcome;
mod parent;
mod publish;
mod reports;
mod settle;
mod sleep;
mod slots;
mod spans;
mod stop;
mod timers;
mod transition;

pub use call::Call;
pub use call_error::CallError;
pub use elsewhere::ChildStart;
pub use error::RunError;
pub use handle::{Run, RunControl};
pub use outcome::request::{OnBusy, RunRequest};
pub use outcome::{
    Child, Ended, Exhausted, Failed, Interrupted, NotEnded, Outcome, QueueStatus, Queued,
    Resumable, Resume, Stopped, Waiting,
};

pub(crate) use begin::{Answered, Begin};
pub(crate) use child::Attach;
pub(crate) use core::RunCore;
pub(crate) use driver::Driver;
pub(crate) use elsewhere::Elsewhere;
pub(crate) use error::Kind;
pub(crate) use input::{fold_input, reduce};
pub(crate) use outcome::Settlement;
pub(crate) use outcome::Source;
pub(crate) use outcome::request::{Launched, Options};
pub(crate) use spans::RunSpan;

pub(crate) use outcome::rest::{ErasedSlots, Rest, Resting, Resumer, Slot};
pub(crate) use stop::StopSignal;
