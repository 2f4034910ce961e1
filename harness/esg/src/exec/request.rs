//! The requests to a worker.
use std::collections::BTreeMap;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value as Json;

use crate::model::{Entity, UnitKey};

use super::limits::Limits;
use super::wire::{Blob, Load, RunStep, Sync, Unstash};

/// The version of the protocol.
pub(super) const PROTOCOL: u32 = 1;

/// A request with the fields of every request.
#[derive(Debug, Serialize)]
pub(super) struct Envelope<'a, T> {
    pub(super) op: &'a str,
    pub(super) nonce: &'a str,
    #[serde(flatten)]
    pub(super) body: T,
}

/// The first request.
#[derive(Debug, Serialize)]
pub(super) struct Hello<'a> {
    pub(super) protocol: u32,
    /// Absent if they are sent compiled.
    pub(super) sources: Ordered<'a>,
    /// Whether the worker returns its compiled modules.
    pub(super) keep: bool,
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

/// The limits that the worker enforces itself.
#[derive(Debug, Serialize)]
pub(super) struct WireLimits {
    address_space: u64,
    cpu_seconds: u64,
    file_size: u64,
    open_files: u64,
    output_bytes: u64,
    value_bytes: u64,
    unit_bytes: u64,
}

/// The system limits the CPU time of a process, which runs many steps. This limit only stops a
/// worker that outlives its host. The host limits each step.
const CPU_OF_A_WORKER: u64 = 24 * 60 * 60;

impl From<&Limits> for WireLimits {
    fn from(limits: &Limits) -> Self {
        Self {
            address_space: limits.address_space,
            cpu_seconds: CPU_OF_A_WORKER,
            file_size: limits.file_size,
            open_files: limits.open_files,
            output_bytes: limits.output,
            value_bytes: limits.value,
            unit_bytes: limits.value,
        }
    }
}

/// Moves values.
#[derive(Debug, Serialize)]
pub(super) struct WireSync<'a> {
    drop: &'a [Entity],
    stash: &'a [UnitKey],
    unstash: &'a [Unstash],
    forget: &'a [UnitKey],
    alias: Vec<(&'a str, &'a str)>,
    load: Vec<WireLoad<'a>>,
    sources: BTreeMap<&'a str, &'a str>,
}

#[derive(Debug, Serialize)]
struct WireLoad<'a> {
    key: &'a UnitKey,
    members: Vec<WireMember<'a>>,
    take: &'a [Entity],
    blob: (usize, usize),
    refs: &'a [Entity],
}

#[derive(Debug, Serialize)]
struct WireMember<'a> {
    entity: &'a Entity,
}

/// The messages of a `sync`, each with its blobs: one, unless there are more than `most` bytes to
/// load. All but the first only load.
pub(super) fn messages(sync: &Sync, most: usize) -> Vec<(WireSync<'_>, Vec<&Blob>)> {
    let alias = sync.alias.iter().map(|(new, old)| (&**new, &**old)).collect();
    let (drop, stash, unstash, forget) = (&*sync.drop, &*sync.stash, &*sync.unstash, &*sync.forget);
    let sources = sync.sources.iter().map(|(step, source)| (&**step, &**source)).collect();
    let mut done = Vec::new();
    let mut message = WireSync { drop, stash, unstash, forget, alias, load: Vec::new(), sources };
    let mut blobs: Vec<&Blob> = Vec::new();
    let mut bytes = 0;
    for Load { key, members, take, blob, refs } in &sync.load {
        if bytes > 0 && bytes + blob.len() > most {
            let next = WireSync {
                drop: &[],
                stash: &[],
                unstash: &[],
                forget: &[],
                alias: Vec::new(),
                load: Vec::new(),
                sources: BTreeMap::new(),
            };
            done.push((std::mem::replace(&mut message, next), std::mem::take(&mut blobs)));
            bytes = 0;
        }
        let members = members.iter().map(|entity| WireMember { entity }).collect();
        message.load.push(WireLoad { key, members, take, blob: (bytes, blob.len()), refs });
        blobs.push(blob);
        bytes += blob.len();
    }
    done.push((message, blobs));
    done
}

/// Runs one step.
#[derive(Debug, Serialize)]
pub(super) struct WireRun<'a> {
    seq: u64,
    step: &'a str,
    source: &'a str,
    readings: Option<&'a [Json]>,
    bind: Option<WireBind<'a>>,
}

#[derive(Debug, Serialize)]
struct WireBind<'a> {
    name: &'a str,
    /// As text, which the worker parses again for every binding.
    json: &'a str,
}

/// An empty object.
#[derive(Debug, Serialize)]
pub(super) struct Nothing {}

impl<'a> From<&RunStep<'a>> for WireRun<'a> {
    fn from(step: &RunStep<'a>) -> Self {
        Self {
            seq: step.seq,
            step: step.step,
            source: step.source,
            readings: step.readings,
            bind: step.bind.map(|(name, json)| WireBind { name, json }),
        }
    }
}

/// Shows a value.
#[derive(Debug, Serialize)]
pub(super) struct WireValue<'a> {
    pub(super) name: &'a str,
    pub(super) limit: u64,
}
