//! Running: one advance of a session until it settles.
//!
//! `transition` decides: a pure function from where the loop stands and what happened to what
//! comes next. `driver` acts: it polls the step, folds its update in place, asks the route, and
//! records each result as one commit. Events of a commit follow it.

mod advance;
mod answers;
mod attempt;
mod brakes;
mod desk;
mod driver;
mod effects;
mod error;
mod handle;
mod held;
mod outcome;
mod perform;
mod purse;
mod record;
mod request;
mod running;
mod settle;
mod transition;
mod turn;

pub use error::RunError;
pub use handle::{Run, RunControl};
pub use outcome::{
    Ended, Exhausted, Failed, Interrupted, NotEnded, Outcome, Resume, Stopped, Waiting,
};
pub use request::RunRequest;

pub(crate) use crate::text::words;
pub(crate) use answers::{Taken, accept};
pub(crate) use brakes::Brakes;
pub(crate) use driver::Driver;
pub(crate) use effects::RunCore;
pub(crate) use error::Kind;
pub(crate) use held::{ErasedSlots, Held, Resumer, Slot};
pub(crate) use outcome::Source;
pub(crate) use record::resolutions;
pub(crate) use request::{Launched, Options};
pub(crate) use running::Running;
pub(crate) use settle::{How, Settlement};
pub(crate) use turn::reduce;
