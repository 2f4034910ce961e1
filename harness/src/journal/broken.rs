//! Why nothing more can be written.

use std::fmt::Display;
use std::sync::Arc;

use crate::step::{FailureKind, StepError};
use crate::store::StoreError;

/// Why nothing more can be written. It is two machine words large, as each commit returns it through
/// many futures.
#[derive(Clone, Debug)]
pub(crate) enum Broken {
    /// Another run has claimed the session, or the lease was not renewed in time.
    LeaseLost,
    /// The store failed.
    Store(Arc<StoreError>),
    /// The log does not replay to the state.
    NotReplayable { field: Arc<String> },
    /// An entry does not encode, or does not follow on the log.
    Unsound(Arc<String>),
}

impl Broken {
    pub(crate) fn unsound(why: impl Display) -> Self {
        Self::Unsound(Arc::new(why.to_string()))
    }

    /// What it means to the step, or the run, that could not be recorded.
    pub(crate) fn to_error(&self) -> StepError {
        let (kind, message) = match self {
            Self::LeaseLost => (
                FailureKind::LeaseLost,
                "the run lost the lease of its session: another run may hold it (nothing was \
                 recorded since; resume the session)"
                    .to_owned(),
            ),
            Self::Store(error) => (FailureKind::Store, error.to_string()),
            Self::NotReplayable { field } => (
                FailureKind::NotReplayable,
                format!(
                    "the operations that the reducer of `{field}` recorded do not give the field's \
                     value (correct them, or record none)"
                ),
            ),
            Self::Unsound(why) => {
                (FailureKind::NotReplayable, format!("failed to record the step: {why}"))
            }
        };
        StepError::of(kind, false, message)
    }
}
