//! The first turn with a worker of CPython.
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use crate::exec::host::request::WireLimits;

/// The first request.
#[derive(Debug, Serialize)]
pub(super) struct Hello<'a> {
    pub(super) protocol: u32,
    /// Absent if they are sent compiled.
    pub(super) sources: Ordered<'a>,
    /// Whether the worker returns its compiled modules.
    pub(super) keep: bool,
    /// Whether the worker replies and waits for one more byte before it touches scratch.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) waits: bool,
    pub(super) scratch: &'a str,
    pub(super) baseline: Baseline<'a>,
    pub(super) limits: WireLimits,
    /// What of the state inside packages is compared.
    pub(super) strictness: &'a str,
    /// Further channels: name, module, source.
    pub(super) ambient: Vec<[&'a str; 3]>,
}

/// The process before the first step.
#[derive(Debug, Serialize)]
pub(super) struct Baseline<'a> {
    /// The environment that steps see, whatever the interpreter adds to its own.
    pub(super) env: Ordered<'a>,
    /// Directories of installed packages. They come last in `sys.path`, so they cannot shadow the
    /// standard library.
    pub(super) path: &'a [String],
}

/// An object whose keys keep their order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ordered<'a>(pub(super) &'a [(&'a str, &'a str)]);

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        self.0.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
        map.end()
    }
}

/// The worker's description of itself.
#[derive(Debug, Deserialize)]
pub(super) struct HelloReply {
    pub(super) python: String,
    pub(super) protocol: u32,
}
