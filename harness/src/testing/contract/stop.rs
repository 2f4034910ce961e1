//! How a clause ends that is not kept.

use crate::id::InvalidSessionId;
use crate::store::StoreError;

/// Why a clause came to no good end.
#[derive(Debug)]
pub(in crate::testing) enum Stop {
    /// It is not kept.
    Broken(String),
    /// It cannot be asked for.
    Skipped(String),
}

pub(in crate::testing) use Stop::Broken;

pub(in crate::testing) type Kept<T = ()> = Result<T, Stop>;

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
