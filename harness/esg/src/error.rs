//! The error of a graph.
use std::collections::BTreeSet;

use thiserror::Error;

use super::blobs::BlobError;
use super::cipher::CipherError;
use super::exec::ExecError;
use super::ledger::JournalError;
use super::model::{Entity, List};
use super::program::ProgramError;

/// Why a call of a [`CodeGraph`](super::CodeGraph) failed. A step that fails is not an error: see
/// [`Report::failed`](super::Report::failed).
#[derive(Debug, Error)]
#[error(transparent)]
pub struct EsgError(#[from] Kind);

#[derive(Debug, Error)]
enum Kind {
    #[error("failed to start or use the Python worker")]
    Exec(#[from] ExecError),
    #[error("failed to store a value")]
    Blob(#[from] BlobError),
    #[error(
        "`{step}` needs {what}, which cannot be serialized, and re-running the steps that made it did not restore \
         it [let the step that needs it make it too]"
    )]
    Missing { step: String, what: String },
    #[error("`{name}` is not bound after the last replay{near}")]
    Unbound { name: String, near: String },
    #[error("replay {run} has no execution {n}")]
    NoSuchRun { run: u64, n: usize },
    #[error("failed to change the program")]
    Program(#[from] ProgramError),
    #[error("failed to read or write `{path}`")]
    Io { path: String, source: std::io::Error },
    #[error("`{path}` is in use by another process [stop that process, or use another directory]")]
    InUse { path: String },
    #[error("`{path}` is damaged at byte {at} [restore it from a copy, or use another directory]")]
    Damaged { path: String, at: usize },
    #[error("failed to decrypt `{path}`")]
    Cipher { path: String, source: CipherError },
    #[error("`{path}` is encrypted [open it with its keys: `CodeGraph::open_encrypted`]")]
    Encrypted { path: String },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("failed to {what}: the executor {lacks} [use one whose `Caps` have that]")]
    Unsupported { what: &'static str, lacks: &'static str },
    #[error("failed to restore the state: no step of the program made the missing part")]
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

    pub(crate) fn cipher(path: &str, source: CipherError) -> Self {
        Kind::Cipher { path: path.into(), source }.into()
    }

    pub(crate) fn encrypted(path: &str) -> Self {
        Kind::Encrypted { path: path.into() }.into()
    }

    /// Why a file of the graph, or a value, was not decrypted. Nothing is lost.
    #[must_use]
    pub fn cipher_error(&self) -> Option<&CipherError> {
        match &self.0 {
            Kind::Cipher { source, .. } | Kind::Blob(BlobError::Cipher { source, .. }) => {
                Some(source)
            }
            _ => None,
        }
    }

    /// Whether the graph is encrypted, and was opened without keys.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        matches!(self.0, Kind::Encrypted { .. })
    }

    /// The error of the program, if the program refused a change.
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

    /// Whether a stored file is damaged.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        matches!(self.0, Kind::Damaged { .. })
    }

    /// Whether a value cannot be shown, and nothing else failed.
    pub(crate) fn is_about_value(&self) -> bool {
        matches!(self.0, Kind::Missing { .. } | Kind::Unbound { .. } | Kind::NoSuchRun { .. })
    }

    pub(crate) fn unsupported(what: &'static str, lacks: &'static str) -> Self {
        Kind::Unsupported { what, lacks }.into()
    }

    /// Whether the executor cannot do this: see [`Caps`](super::Caps).
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(self.0, Kind::Unsupported { .. })
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

impl From<JournalError> for EsgError {
    fn from(error: JournalError) -> Self {
        Kind::from(error).into()
    }
}

impl From<ProgramError> for EsgError {
    fn from(error: ProgramError) -> Self {
        Kind::from(error).into()
    }
}
