use std::fmt;
use std::sync::Arc;

use super::StepId;

/// The name of a step. Strings convert into it, for a loop built at run time (see
/// [`Harness::dynamic`](crate::Harness::dynamic)), and the steps of an enum.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepName(pub(crate) Arc<str>);

impl StepName {
    /// The name as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<St: StepId> From<St> for StepName {
    fn from(step: St) -> Self {
        Self(step.name().into())
    }
}

impl From<&str> for StepName {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl From<String> for StepName {
    fn from(name: String) -> Self {
        Self(name.into())
    }
}

impl From<&String> for StepName {
    fn from(name: &String) -> Self {
        Self(name.as_str().into())
    }
}

impl fmt::Display for StepName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
