//! What executions did, and when one may stand for a run that does not happen.
mod apply;
mod execution;
mod record;
mod unify;
mod verify;

pub use execution::{Execution, Trace};
pub(crate) use record::Recorder;
pub(crate) use unify::{Held, unify};
pub(crate) use verify::{Changed, changed};
