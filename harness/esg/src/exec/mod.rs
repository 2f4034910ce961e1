//! Where steps run: a worker that holds live values, loads a state and runs one step at a time.
mod caps;
#[cfg(unix)]
mod cpython;
mod error;
#[cfg(unix)]
mod host;
mod limits;
#[cfg(feature = "monty")]
mod monty;
#[cfg(unix)]
mod start_error;
#[cfg(all(test, unix))]
mod tests;
mod trust;
mod wire;

pub use caps::Caps;
#[cfg(unix)]
pub use cpython::{Ambient, CPython, Interpreter, Strictness};
pub use error::ExecError;
pub use harness_esg_launcher::Layer;
#[cfg(unix)]
pub use host::WorkerProcess;
#[cfg(unix)]
pub(crate) use host::discard_scratch;
pub use limits::Limits;
#[cfg(feature = "monty")]
pub use monty::{Monty, MontyAllocator, MontyError, MontyWorker};
#[cfg(unix)]
pub use start_error::StartError;
pub use trust::{Isolation, Readable, Trust};
pub use wire::{
    Blob, Ending, Frame, Graft, Load, Output, Ran, RunStep, Swept, Sync, Synced, Unstash,
    Untracked, Value, Wrote,
};

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Only a worker process leaves anything.
#[cfg(not(unix))]
pub(crate) fn discard_scratch(_: &Path) -> std::io::Result<()> {
    Ok(())
}

/// A worker for one language.
///
/// The worker holds *live* values. [`sync`](Self::sync) brings them to a state, and
/// [`run`](Self::run) runs one step on them and reports what it did. A step that fails is an
/// [`Ending`]; an error means that the worker itself failed.
///
/// If a step kills the worker, [`Ran::lost`] reports it: no value is live any more, and the next
/// call starts a fresh worker. [`ExecError::lost`] reports the same of a worker that was lost while
/// no step ran.
///
/// The page [`_executors`](crate::_executors) is for who adds a language, and
/// `testing::ExecutorContract` (feature `testing`) checks an executor for every promise.
pub trait Executor: Send + fmt::Debug {
    /// What values and fingerprints of this worker depend on: language, version, how steps are
    /// tracked. Two workers may share executions only if this is equal.
    fn fingerprint(&self) -> &str;

    /// What it can do. A graph refuses what it cannot.
    fn caps(&self) -> Caps;

    /// The files outside of scratch that steps may read. By default none.
    fn readable(&self) -> Readable {
        Readable::Nothing
    }

    /// Moves scratch below `dir`, before the first step, so that the worker of a later process finds
    /// it at the same path. By default nothing moves.
    ///
    /// # Errors
    /// If the directory cannot be used.
    fn keep_scratch(&mut self, dir: &Path) -> Result<(), ExecError> {
        let _ = dir;
        Ok(())
    }

    /// Replaces the worker by a fresh one with no live values and an empty scratch directory.
    ///
    /// # Errors
    /// If the worker fails to start.
    fn fresh(&mut self) -> Result<(), ExecError>;

    /// Loads, binds and drops values.
    ///
    /// # Errors
    /// If the worker fails to start, or breaks down.
    fn sync(&mut self, request: &Sync) -> Result<Synced, ExecError>;

    /// Runs one step.
    ///
    /// # Errors
    /// If the worker fails to start.
    fn run(&mut self, request: &RunStep<'_>) -> Result<Ran, ExecError>;

    /// Binds what an earlier run of a step bound, without running it. Reports what it changed, as for a step
    /// that reads nothing; `None`, without effect, if it cannot. Then the step runs. By default it never can.
    ///
    /// # Errors
    /// If the worker fails to start, or breaks down.
    fn graft(&mut self, request: &Graft<'_>) -> Result<Option<Ran>, ExecError> {
        let _ = request;
        Ok(None)
    }

    /// Inspects everything that is live, without relying on what was tracked.
    ///
    /// # Errors
    /// If the worker breaks down.
    fn sweep(&mut self) -> Result<Swept, ExecError>;

    /// Shows a live value.
    ///
    /// # Errors
    /// If the worker breaks down, or the name is not live.
    fn value(&mut self, name: &str) -> Result<Value, ExecError>;

    /// A handle that kills the worker from any thread.
    fn kill_handle(&self) -> KillHandle;

    /// A second, fresh worker of the same kind at the same scratch path, for comparisons. This one
    /// must not be used while the twin exists.
    ///
    /// # Errors
    /// If the worker fails to start.
    fn twin(&mut self) -> Result<Box<dyn Executor>, ExecError>;
}

/// Kills the worker from another thread. The running step ends as killed.
#[derive(Clone)]
pub struct KillHandle(Arc<dyn Fn() + Send + std::marker::Sync>);

impl KillHandle {
    /// A handle that calls `kill`.
    #[must_use]
    pub fn new(kill: impl Fn() + Send + std::marker::Sync + 'static) -> Self {
        Self(Arc::new(kill))
    }

    /// Kills the worker if it is running.
    pub fn kill(&self) {
        (self.0)();
    }
}

impl fmt::Debug for KillHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KillHandle")
    }
}
