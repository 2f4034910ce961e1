//! A worker could not be had.
use std::error::Error as StdError;

use thiserror::Error;

/// A worker could not be started, or broke down outside of a step. A failing step is no error but
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
    /// An error that says `message`.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), lost: false, source: None }
    }

    /// The same, with what the system said.
    #[must_use]
    pub fn io(message: impl Into<String>, source: std::io::Error) -> Self {
        Self { message: message.into(), lost: false, source: Some(Box::new(source)) }
    }

    /// The same, and everything that was live is gone with the worker.
    #[must_use]
    pub fn with_loss(mut self) -> Self {
        self.lost = true;
        self
    }

    /// What kept another worker from starting. Nothing is lost with it.
    #[cfg(unix)]
    pub(super) fn kept(error: super::cpython::StartError) -> Self {
        Self { lost: false, ..Self::from(error) }
    }

    /// Whether everything that was live is gone. The next call starts a fresh worker.
    #[must_use]
    pub fn lost(&self) -> bool {
        self.lost
    }
}

#[cfg(unix)]
impl From<super::cpython::StartError> for ExecError {
    /// Nothing is live in a worker that did not start.
    fn from(error: super::cpython::StartError) -> Self {
        Self { message: error.to_string(), lost: true, source: Some(Box::new(error)) }
    }
}
