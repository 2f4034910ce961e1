//! The worker that runs the programs.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use harness::code::Bench;
use harness::esg::{BlobError, Blobs, CPython, Limits, StartError, Trust, WorkerProcess};

/// Why no program can be run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkerError {
    /// There is no sandbox for code of others.
    #[error("{0}; with --trust mine, programs may do whatever you may do")]
    Untrusted(#[source] StartError),
    /// The worker does not start.
    #[error(transparent)]
    Start(StartError),
    /// Its values cannot be kept.
    #[error(transparent)]
    Blobs(#[from] BlobError),
}

/// Starts a worker, and makes the bench that begins with it. A part of a program may take as long as `wall`.
/// Without an interpreter, it is that of the virtual environment which is active, or one in PATH.
/// Programs can read `data`.
pub(crate) fn bench(
    python: Option<&Path>,
    data: Option<&Path>,
    trust: Trust,
    wall: Duration,
    values: &Path,
) -> Result<Bench, WorkerError> {
    let limits = Limits { wall, cpu: 2 * wall, address_space: 2 << 30, ..Limits::default() };
    let python = match python {
        Some(python) => CPython::at(python),
        None => CPython::find(),
    };
    let python = match data {
        Some(data) => python.read_only(data),
        None => python,
    };
    let start = move || python.clone().trust(trust).limits(limits).start();
    let is_sandbox =
        |error: &_| matches!(error, StartError::Exposed { .. } | StartError::Launcher { .. });
    let first = start().map_err(|error| match is_sandbox(&error) {
        true => WorkerError::Untrusted(error),
        false => WorkerError::Start(error),
    })?;
    let first: Mutex<Option<WorkerProcess>> = Mutex::new(Some(first));
    let next = move || match first.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(started) => Ok(started),
        None => start(),
    };
    Ok(Bench::new(next, Blobs::dir(values)?))
}
