//! Versions: what a step's source was, and what it was made from.
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::Print;

/// Which version, of all that a program ever had. Prints as `v7`.
///
/// Versions are numbered in the order they were made, so that the same operations give the same
/// numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VersionId(pub(super) u32);

impl fmt::Display for VersionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

/// What a version is a version of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VersionKind {
    /// The source of a step.
    Step,
    /// The value of an input, as JSON.
    Input,
}

/// One version of a step or of an input. Versions form a tree and are never lost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Version {
    /// Which.
    pub id: VersionId,
    /// What it was made from: the version that stood when it was made.
    pub parent: Option<VersionId>,
    /// The step, or the input, that it is a version of.
    pub step: Arc<str>,
    /// Whether that is a step or an input.
    pub kind: VersionKind,
    /// Its text, as written.
    pub source: Arc<str>,
    /// Identity of the code. Two versions of one step with the same syntax do the same, whatever
    /// their comments and layout.
    pub syntax: Print,
    /// Who made it, if that was said.
    pub author: Option<Arc<str>>,
    /// What for, if that was said.
    pub cause: Option<Arc<str>>,
}
