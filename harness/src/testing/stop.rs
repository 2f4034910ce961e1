//! How a clause ends that is not kept.

use crate::id::InvalidSessionId;
use crate::store::StoreError;

macro_rules! ensure {
    ($holds:expr, $($why:tt)*) => {
        if !$holds {
            return Err(crate::testing::stop::Broken(format!($($why)*)));
        }
    };
}

/// Compares what was found with what was expected.
macro_rules! same {
    ($what:expr, $found:expr, $expected:expr $(,)?) => {
        match (&$found, &$expected) {
            (found, expected) => {
                ensure!(found == expected, "{}: expected {expected:?}, found {found:?}", $what)
            }
        }
    };
}

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
