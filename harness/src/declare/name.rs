use std::fmt;
use std::sync::Arc;

/// The name of a step in a loop built at run time: see
/// [`Harness::dynamic`](crate::Harness::dynamic). Strings convert into it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepName(pub(super) Arc<str>);

impl StepName {
    /// The name as a string.
    pub fn as_str(&self) -> &str {
        &self.0
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
