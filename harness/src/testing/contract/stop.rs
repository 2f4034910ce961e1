//! How a clause ends that is not kept.

use crate::id::InvalidSessionId;
use crate::store::StoreError;

/// Why a clause came to no good end.
#[derive(Debug)]
pub(super) enum Stop {
    /// The store does not keep it.
    Broken(String),
    /// It cannot be asked of this store.
    Skipped(String),
}

pub(super) use Stop::Broken;

pub(super) type Kept<T = ()> = Result<T, Stop>;

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Broken(format!("unexpected error: {error} ({error:?})"))
    }
}

impl From<InvalidSessionId> for Stop {
    fn from(error: InvalidSessionId) -> Self {
        Broken(error.to_string())
    }
}

impl From<tokio::task::JoinError> for Stop {
    fn from(error: tokio::task::JoinError) -> Self {
        Broken(format!("a call did not return: {error}"))
    }
}
