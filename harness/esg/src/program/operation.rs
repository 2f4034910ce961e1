//! Changes of a program, as data.
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::VersionId;
use super::artifact::Part;

/// One change of a program, with its author and cause.
///
/// A program replays from its operations: applied in order to an empty program they give the same
/// program, down to the ids of its versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Operation {
    /// The change.
    pub change: Change,
    /// The author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Arc<str>>,
    /// The cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Arc<str>>,
}

impl Operation {
    /// Sets the author.
    #[must_use]
    pub fn by(mut self, author: &str) -> Self {
        self.author = Some(author.into());
        self
    }

    /// Sets the cause.
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

/// A change of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// A step was added.
    Added {
        /// Its id.
        step: Arc<str>,
        /// Its source.
        source: Arc<str>,
        /// The step after it; `None` at the end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<Arc<str>>,
    },
    /// The source of a step was replaced.
    Replaced {
        /// Its id.
        step: Arc<str>,
        /// Its new source.
        source: Arc<str>,
    },
    /// A step was removed. Its versions stay.
    Removed {
        /// Its id.
        step: Arc<str>,
    },
    /// A step was moved.
    Moved {
        /// Its id.
        step: Arc<str>,
        /// The step that now comes after it; `None` at the end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<Arc<str>>,
    },
    /// A step, or an input, returned to one of its versions.
    RolledBack {
        /// The version.
        version: VersionId,
    },
    /// An input was bound or changed.
    Input {
        /// Its name.
        name: Arc<str>,
        /// The value.
        value: Value,
    },
    /// An input was bound or changed, to the value of a JSON text.
    InputJson {
        /// Its name.
        name: Arc<str>,
        /// The text.
        json: Arc<str>,
    },
    /// An artifact was set.
    Artifact {
        /// Its name.
        name: Arc<str>,
        /// Its parts. Without parts the artifact is removed.
        parts: Vec<Part>,
    },
}

impl Change {
    /// Appends a step.
    #[must_use]
    pub fn added(step: &str, source: &str) -> Self {
        Self::Added { step: step.into(), source: source.into(), before: None }
    }

    /// Replaces the source of a step.
    #[must_use]
    pub fn replaced(step: &str, source: &str) -> Self {
        Self::Replaced { step: step.into(), source: source.into() }
    }
}
