//! Where steps run: a worker that holds live values, is brought to a state and runs one step.
#[cfg(unix)]
mod cpython;
#[cfg(unix)]
mod ending;
mod error;
#[cfg(unix)]
mod frame;
mod limits;
#[cfg(unix)]
mod pipe;
#[cfg(unix)]
mod process;
#[cfg(unix)]
mod python;
#[cfg(unix)]
mod reply;
#[cfg(unix)]
mod request;
#[cfg(unix)]
mod scratch;
#[cfg(unix)]
mod sources;
#[cfg(all(test, unix))]
mod tests;
mod trust;
mod wire;

#[cfg(unix)]
pub use cpython::{CPython, Interpreter, StartError};
pub use error::ExecError;
pub use limits::Limits;
#[cfg(unix)]
pub use python::Python;
pub use trust::{Isolation, Layer, Trust};
pub use wire::{
    Blob, Ending, Frame, Load, Output, Ran, RunStep, Swept, Sync, Synced, Unstash, Untracked,
    Value, Wrote,
};

use std::fmt;
use std::sync::Arc;

/// A worker for one language.
///
/// The worker holds *live* values. [`sync`](Self::sync) brings them to a state, [`run`](Self::run)
/// runs one step on them and says what it did. A step that fails is an [`Ending`]; an error means
/// that the worker itself could not be had.
///
/// When a step takes the worker with it, [`Ran::lost`] says so: nothing is live any more, and the
/// next call starts a fresh worker. [`ExecError::lost`] says the same of a worker that was lost when
/// no step ran.
pub trait Executor: Send + fmt::Debug {
    /// What values and prints of this worker depend on: language, version, how it is tracked. Two
    /// workers may share executions only if this is equal.
    fn fingerprint(&self) -> &str;

    /// Replaces the worker by a fresh one, in which nothing is live and scratch is empty.
    ///
    /// # Errors
    /// If no worker can be started.
    fn fresh(&mut self) -> Result<(), ExecError>;

    /// Moves what is live.
    ///
    /// # Errors
    /// If no worker can be started, or it broke down.
    fn sync(&mut self, request: &Sync) -> Result<Synced, ExecError>;

    /// Runs one step.
    ///
    /// # Errors
    /// If no worker can be started.
    fn run(&mut self, request: &RunStep<'_>) -> Result<Ran, ExecError>;

    /// Looks at everything that is live, from scratch.
    ///
    /// # Errors
    /// If the worker broke down.
    fn sweep(&mut self) -> Result<Swept, ExecError>;

    /// Shows a live value.
    ///
    /// # Errors
    /// If the worker broke down, or the name is not live.
    fn value(&mut self, name: &str) -> Result<Value, ExecError>;

    /// Ends what the worker is doing, from any thread.
    fn kill_handle(&self) -> KillHandle;

    /// A second, fresh worker of the same kind at the same scratch path, for comparing. This one
    /// must not be used while the twin lives.
    ///
    /// # Errors
    /// If no worker can be started.
    fn twin(&mut self) -> Result<Box<dyn Executor>, ExecError>;
}

/// Ends the worker from another thread. The step that runs ends as killed.
#[derive(Clone)]
pub struct KillHandle(Arc<dyn Fn() + Send + std::marker::Sync>);

impl KillHandle {
    /// A handle that calls `kill`.
    #[must_use]
    pub fn new(kill: impl Fn() + Send + std::marker::Sync + 'static) -> Self {
        Self(Arc::new(kill))
    }

    /// Kills the worker, if it runs.
    pub fn kill(&self) {
        (self.0)();
    }
}

impl fmt::Debug for KillHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KillHandle")
    }
}
