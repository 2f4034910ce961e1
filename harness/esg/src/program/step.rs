//! One step of a program.
use std::sync::Arc;

use crate::model::Print;
use crate::scan::Scan;

use super::VersionId;

/// One step of a program, as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// Its id.
    pub id: Arc<str>,
    /// Which version it is at.
    pub version: VersionId,
    /// Its source, as written.
    pub source: Arc<str>,
    /// Identity of its code, without comments and layout.
    pub syntax: Print,
    /// What it may do to the names around it.
    pub scan: Arc<Scan>,
}

/// A value that is bound before the first step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Input {
    /// The name it is bound to.
    pub name: Arc<str>,
    /// Which version it is at.
    pub version: VersionId,
    /// The value, as JSON.
    pub json: Arc<str>,
    /// Identity of the value.
    pub print: Print,
}
