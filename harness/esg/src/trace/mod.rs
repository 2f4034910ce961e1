//! What executions did, and when a recorded execution may replace a new run.
mod apply;
mod execution;
mod record;
mod unify;
mod verify;

pub(crate) use execution::Read;
pub use execution::{Execution, Trace};
pub(crate) use record::Recorder;
pub(crate) use unify::{Held, unify};
pub(crate) use verify::{Changed, changed, only_others_changed};
