//! What is done to a program, as data.
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::VersionId;
use super::artifact::Part;

/// One thing done to a program, with who did it and what for.
///
/// A program is the sum of its operations: applied in order to an empty one they give the same
/// program, down to the ids of its versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Operation {
    /// What was done.
    pub change: Change,
    /// Who did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Arc<str>>,
    /// What for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Arc<str>>,
}

impl Operation {
    /// The same, done by `author`.
    #[must_use]
    pub fn by(mut self, author: &str) -> Self {
        self.author = Some(author.into());
        self
    }

    /// The same, done because of `cause`.
    #[must_use]
    pub fn because(mut self, cause: &str) -> Self {
        self.cause = Some(cause.into());
        self
    }
}

impl From<Change> for Operation {
    fn from(change: Change) -> Self {
        Self { change, author: None, cause: None }
    }
}

/// What can be done to a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// A step came in.
    Added {
        /// Its id.
        step: Arc<str>,
        /// Its source.
        source: Arc<str>,
        /// The step it came in before; without one, it is the last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<Arc<str>>,
    },
    /// A step got another source.
    Replaced {
        /// Its id.
        step: Arc<str>,
        /// Its source from now on.
        source: Arc<str>,
    },
    /// A step left. Its versions stay.
    Removed {
        /// Its id.
        step: Arc<str>,
    },
    /// A step went to another place.
    Moved {
        /// Its id.
        step: Arc<str>,
        /// The step it stands before from now on; without one, it is the last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<Arc<str>>,
    },
    /// A step, or an input, went back to one of its versions.
    RolledBack {
        /// That version.
        version: VersionId,
    },
    /// An input got a value.
    Input {
        /// Its name.
        name: Arc<str>,
        /// The value.
        value: Value,
    },
    /// An artifact got its parts.
    Artifact {
        /// Its name.
        name: Arc<str>,
        /// Its parts; without any there is no such artifact any more.
        parts: Vec<Part>,
    },
}

impl Change {
    /// A step comes in as the last.
    #[must_use]
    pub fn added(step: &str, source: &str) -> Self {
        Self::Added { step: step.into(), source: source.into(), before: None }
    }

    /// A step gets another source.
    #[must_use]
    pub fn replaced(step: &str, source: &str) -> Self {
        Self::Replaced { step: step.into(), source: source.into() }
    }
}
