//! Changes of a program, as data.
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::artifact::Part;
use super::{Provenance, VersionId};

/// One change of a program, and where it comes from.
///
/// A program replays from its operations: applied in order to an empty program they give the same
/// program, down to the ids of its versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Operation {
    /// The change.
    pub change: Change,
    /// Where it comes from.
    #[serde(default, skip_serializing_if = "Provenance::is_default")]
    pub provenance: Provenance,
}

impl Operation {
    /// Sets where it comes from.
    #[must_use]
    pub fn signed(mut self, provenance: Provenance) -> Self {
        self.provenance = provenance;
        self
    }
}

impl From<Change> for Operation {
    fn from(change: Change) -> Self {
        Self { change, provenance: Provenance::default() }
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
