//! Artifacts: named views over steps.
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What an artifact consists of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// A step.
    Step(Arc<str>),
    /// A name: the steps that determine it at the end of the program.
    Symbol(Arc<str>),
}

impl Part {
    /// The step of that id.
    #[must_use]
    pub fn step(id: &str) -> Self {
        Self::Step(id.into())
    }

    /// The name.
    #[must_use]
    pub fn symbol(name: &str) -> Self {
        Self::Symbol(name.into())
    }
}
