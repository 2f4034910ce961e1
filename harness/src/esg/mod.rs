//! The execution state graph: a program of steps, of which only what an edit touched runs again.
mod exec;
mod model;
mod scan;

pub use exec::{
    Blob, Ending, ExecError, Executor, Frame, Isolation, KillHandle, Layer, Limits, Load, Output,
    Ran, RunStep, Swept, Sync, Synced, Trust, Unstash, Untracked, Value, Wrote,
};
#[cfg(unix)]
pub use exec::{CPython, Interpreter, Python, StartError};
pub use model::{Entity, EntityError, Member, Print, Unit, UnitKey};
pub use scan::{Definition, Import, Scan, SyntaxError, scan};
