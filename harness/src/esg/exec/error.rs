//! A worker could not be had.
use thiserror::Error;

/// A worker could not be started, or broke down outside of a step. A failing step is no error but
/// an [`Ending`](super::Ending).
#[derive(Debug, Error)]
#[error("{message}")]
pub struct ExecError {
    message: String,
    #[source]
    source: Option<std::io::Error>,
}

impl ExecError {
    /// An error that says `message`.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), source: None }
    }

    /// The same, with what the system said.
    #[must_use]
    pub fn io(message: impl Into<String>, source: std::io::Error) -> Self {
        Self { message: message.into(), source: Some(source) }
    }
}
