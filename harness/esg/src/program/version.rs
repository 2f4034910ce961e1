//! Versions: the former sources of steps, and their parents.
mod provenance;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::Fingerprint;

pub use provenance::{Provenance, ProvenanceKind};

/// The number of a version. Displays as `v7`.
///
/// Versions are numbered in the order of their creation, so the same operations give the same
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
    /// The version that was current when this one was made.
    pub parent: Option<VersionId>,
    /// The step or the input.
    pub step: Arc<str>,
    /// Whether it is a step or an input.
    pub kind: VersionKind,
    /// Its text, as written.
    pub source: Arc<str>,
    /// Identity of the code. Two versions of one step with the same syntax behave the same;
    /// comments and layout do not matter.
    pub syntax: Fingerprint,
    /// Where it comes from.
    pub provenance: Provenance,
}
