//! Why a program could not be replayed.
use std::collections::BTreeSet;

use thiserror::Error;

use super::blobs::BlobError;
use super::exec::ExecError;
use super::model::{Entity, List};
use super::program::ProgramError;

/// Why a program could not be replayed. A step that fails is no error: see
/// [`Report::failed`](super::Report::failed).
#[derive(Debug, Error)]
#[error(transparent)]
pub struct EsgError(#[from] Kind);

#[derive(Debug, Error)]
enum Kind {
    #[error("no worker could be had for the steps")]
    Exec(#[from] ExecError),
    #[error("a value could not be stored")]
    Blob(#[from] BlobError),
    #[error(
        "`{step}` needs {what}, which can not be stored, and running the steps that made it did not bring it back \
         [make the step that needs it make it too]"
    )]
    Missing { step: String, what: String },
    #[error("`{name}` is not bound after the last replay{near}")]
    Unbound { name: String, near: String },
    #[error("there was no place {n} in replay {run}")]
    NoSuchRun { run: u64, n: usize },
    #[error("the program could not be changed")]
    Program(#[from] ProgramError),
    #[error("`{path}` could not be read or written")]
    Io { path: String, source: std::io::Error },
    #[error(
        "`{path}` is in use by another process [end that one, or give this one another directory]"
    )]
    InUse { path: String },
    #[error(
        "`{path}` is damaged at byte {at} [restore it from a copy, or begin in another directory]"
    )]
    Damaged { path: String, at: usize },
    #[error("a record of `{path}` could not be encoded: {why}")]
    Encode { path: String, why: String },
    #[error("the state could not be restored: what is missing was made by no step of the program")]
    Unreachable,
}

impl EsgError {
    pub(crate) fn missing(step: &str, entities: &BTreeSet<Entity>) -> Self {
        let entities: Vec<_> = entities.iter().cloned().collect();
        Kind::Missing { step: step.into(), what: List(&entities).to_string() }.into()
    }

    pub(crate) fn unbound(name: &str, near: Option<&str>) -> Self {
        let near = near.map(|near| format!(" [did you mean `{near}`?]")).unwrap_or_default();
        Kind::Unbound { name: name.into(), near }.into()
    }

    pub(crate) fn no_such_run(run: u64, n: usize) -> Self {
        Kind::NoSuchRun { run, n }.into()
    }

    pub(crate) fn io(path: &str, source: std::io::Error) -> Self {
        Kind::Io { path: path.into(), source }.into()
    }

    pub(crate) fn in_use(path: &str) -> Self {
        Kind::InUse { path: path.into() }.into()
    }

    pub(crate) fn damaged(path: &str, at: usize) -> Self {
        Kind::Damaged { path: path.into(), at }.into()
    }

    pub(crate) fn encode(path: &str, error: &serde_json::Error) -> Self {
        Kind::Encode { path: path.into(), why: error.to_string() }.into()
    }

    /// What the program said, if it was the program that refused.
    #[must_use]
    pub fn as_program(&self) -> Option<&ProgramError> {
        match &self.0 {
            Kind::Program(error) => Some(error),
            _ => None,
        }
    }

    /// Whether another process has the graph open.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        matches!(self.0, Kind::InUse { .. })
    }

    /// Whether what is kept is damaged.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        matches!(self.0, Kind::Damaged { .. })
    }

    pub(crate) fn unreachable_state() -> Self {
        Kind::Unreachable.into()
    }
}

impl From<ExecError> for EsgError {
    fn from(error: ExecError) -> Self {
        Kind::from(error).into()
    }
}

impl From<BlobError> for EsgError {
    fn from(error: BlobError) -> Self {
        Kind::from(error).into()
    }
}

impl From<ProgramError> for EsgError {
    fn from(error: ProgramError) -> Self {
        Kind::from(error).into()
    }
}
