//! A step as replay sees it.
use std::sync::Arc;

use crate::model::Fingerprint;
use crate::scan::Scan;

/// A step at its current version.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) id: Arc<str>,
    pub(crate) syntax: Fingerprint,
    pub(crate) source: Arc<str>,
    /// An input: the name to bind and the JSON of its value, instead of a source to run.
    pub(crate) bind: Option<(Arc<str>, Arc<str>)>,
    pub(crate) scan: Arc<Scan>,
}

/// The options of a replay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Whether the steps after a failed one do not run.
    pub(crate) stop_on_failure: bool,
    /// Whether the replay ends with a sweep of everything that is live.
    pub(crate) sweep: bool,
}
