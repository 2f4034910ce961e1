//! What a tool does to the world.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a call of a tool does to the world: how it is protected from repetition, and what a policy
/// of approvals can decide by.
///
/// | class | if the process dies during the call |
/// |---|---|
/// | `Read` | it runs again |
/// | `Write` | it runs again, under the same [`op_id`](crate::Cx::op_id) |
/// | `External`, `Destructive` | it never runs again: its outcome is [`InDoubt`](super::ToolOutcome::InDoubt) |
///
/// [`Cx::call_tools`](crate::Cx::call_tools) keeps this.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EffectClass {
    /// It changes nothing, so it can run any number of times.
    Read,
    /// It changes data of the program. The same call again leaves the same data.
    Write,
    /// It acts outside of the program: it sends a message, or moves money. The default.
    #[default]
    External,
    /// It removes what cannot be made again.
    Destructive,
}

impl EffectClass {
    /// Whether a call that may have happened must not be made again.
    pub fn is_guarded(self) -> bool {
        self >= Self::External
    }
}

impl fmt::Display for EffectClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::External => "external",
            Self::Destructive => "destructive",
        })
    }
}
