//! What becomes of a call.

use serde::{Deserialize, Serialize};

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It is made.
    Allow,
    /// A person is asked.
    Ask,
    /// It is not made.
    Deny,
}
