//! One step of a program.
use std::sync::Arc;

use crate::model::Fingerprint;
use crate::scan::Scan;

use super::VersionId;

/// One step of a program, at its current version.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// Its id.
    pub id: Arc<str>,
    /// Its current version.
    pub version: VersionId,
    /// Its source, as written.
    pub source: Arc<str>,
    /// Identity of its code, without comments and layout.
    pub syntax: Fingerprint,
    /// Its static effects.
    pub scan: Arc<Scan>,
}

/// A value that is bound before the first step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Input {
    /// The name it is bound to.
    pub name: Arc<str>,
    /// Its current version.
    pub version: VersionId,
    /// The value, as JSON.
    pub json: Arc<str>,
    /// Identity of the value.
    pub fingerprint: Fingerprint,
}
