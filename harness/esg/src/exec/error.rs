//! The error of a worker.
use std::error::Error as StdError;

use thiserror::Error;

/// The worker failed to start, or broke down outside of a step. A failing step is not an error but
/// an [`Ending`](super::Ending).
#[derive(Debug, Error)]
#[error("{message}")]
pub struct ExecError {
    message: String,
    lost: bool,
    #[source]
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl ExecError {
    /// An error with `message`.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), lost: false, source: None }
    }

    /// An error with `message` and the system's error as its source.
    #[must_use]
    pub fn io(message: impl Into<String>, source: std::io::Error) -> Self {
        Self { message: message.into(), lost: false, source: Some(Box::new(source)) }
    }

    /// Marks that all live values are gone with the worker.
    #[must_use]
    pub fn with_loss(mut self) -> Self {
        self.lost = true;
        self
    }

    /// Another worker failed to start. Nothing is lost.
    #[cfg(unix)]
    pub(super) fn kept(error: super::start_error::StartError) -> Self {
        Self { lost: false, ..Self::from(error) }
    }

    /// Whether all live values are gone. The next call starts a fresh worker.
    #[must_use]
    pub fn lost(&self) -> bool {
        self.lost
    }
}

#[cfg(unix)]
impl From<super::start_error::StartError> for ExecError {
    /// A worker that failed to start had no live values.
    fn from(error: super::start_error::StartError) -> Self {
        Self { message: error.to_string(), lost: true, source: Some(Box::new(error)) }
    }
}
