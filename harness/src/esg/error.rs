//! Why a program could not be replayed.
use std::collections::BTreeSet;

use thiserror::Error;

use super::blobs::BlobError;
use super::exec::ExecError;
use super::model::Entity;
use super::replay::List;

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
    #[error("the state could not be restored: what is missing was made by no step of the program")]
    Unreachable,
}

impl EsgError {
    pub(crate) fn missing(step: &str, entities: &BTreeSet<Entity>) -> Self {
        let entities: Vec<_> = entities.iter().cloned().collect();
        Kind::Missing { step: step.into(), what: List(&entities).to_string() }.into()
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
