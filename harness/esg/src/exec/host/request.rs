//! The requests to a worker.
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value as Json;

use crate::model::{Entity, UnitKey};

use crate::exec::limits::Limits;
use crate::exec::wire::{Blob, Graft, Load, RunStep, Sync, Unstash};

/// The version of the protocol.
pub(in crate::exec) const PROTOCOL: u32 = 1;

/// A request with the fields of every request.
#[derive(Debug, Serialize)]
pub(in crate::exec) struct Envelope<'a, T> {
    pub(in crate::exec) op: &'a str,
    pub(in crate::exec) nonce: &'a str,
    #[serde(flatten)]
    pub(in crate::exec) body: T,
}

/// The limits that the worker enforces itself.
#[derive(Debug, Serialize)]
pub(in crate::exec) struct WireLimits {
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
pub(in crate::exec) struct WireSync<'a> {
    drop: &'a [Entity],
    stash: &'a [UnitKey],
    unstash: &'a [Unstash],
    forget: &'a [UnitKey],
    alias: Vec<(&'a str, &'a str)>,
    load: Vec<WireLoad<'a>>,
    sources: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    moved: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "<[Entity]>::is_empty")]
    order: &'a [Entity],
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

impl<'a> WireLoad<'a> {
    /// With its blob at this place in the message.
    fn at(place: usize, load: &'a Load) -> Self {
        let Load { key, members, take, blob, refs } = load;
        let members = members.iter().map(|entity| WireMember { entity }).collect();
        Self { key, members, take, blob: (place, blob.len()), refs }
    }
}

fn texts(of: &[(Arc<str>, Arc<str>)]) -> BTreeMap<&str, &str> {
    of.iter().map(|(step, text)| (&**step, &**text)).collect()
}

/// The messages of a `sync`, each with its blobs: one, unless there are more than `most` bytes to
/// load. All but the first only load.
pub(in crate::exec) fn messages(sync: &Sync, most: usize) -> Vec<(WireSync<'_>, Vec<&Blob>)> {
    let alias = sync.alias.iter().map(|(new, old)| (&**new, &**old)).collect();
    let (drop, stash, unstash, forget) = (&*sync.drop, &*sync.stash, &*sync.unstash, &*sync.forget);
    let (sources, moved) = (texts(&sync.sources), texts(&sync.moved));
    let mut done = Vec::new();
    let load = Vec::new();
    let mut message =
        WireSync { drop, stash, unstash, forget, alias, load, sources, moved, order: &[] };
    let mut blobs: Vec<&Blob> = Vec::new();
    let mut bytes = 0;
    for load in &sync.load {
        if bytes > 0 && bytes + load.blob.len() > most {
            let next = WireSync {
                drop: &[],
                stash: &[],
                unstash: &[],
                forget: &[],
                alias: Vec::new(),
                load: Vec::new(),
                sources: BTreeMap::new(),
                moved: BTreeMap::new(),
                order: &[],
            };
            done.push((std::mem::replace(&mut message, next), std::mem::take(&mut blobs)));
            bytes = 0;
        }
        message.load.push(WireLoad::at(bytes, load));
        blobs.push(&load.blob);
        bytes += load.blob.len();
    }
    message.order = &sync.order;
    done.push((message, blobs));
    done
}

/// Runs one step.
#[derive(Debug, Serialize)]
pub(in crate::exec) struct WireRun<'a> {
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
pub(in crate::exec) struct Nothing {}

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

/// Binds what a step bound.
#[derive(Debug, Serialize)]
pub(in crate::exec) struct WireGraft<'a> {
    seq: u64,
    units: Vec<WireLoad<'a>>,
    onto: &'a [Entity],
}

impl<'a> WireGraft<'a> {
    /// The request, with its blobs.
    pub(in crate::exec) fn new(graft: &Graft<'a>) -> (Self, Vec<&'a Blob>) {
        let (mut units, mut blobs, mut bytes) = (Vec::new(), Vec::new(), 0);
        for load in graft.units {
            units.push(WireLoad::at(bytes, load));
            blobs.push(&load.blob);
            bytes += load.blob.len();
        }
        (Self { seq: graft.seq, units, onto: graft.onto }, blobs)
    }
}

/// Shows a value.
#[derive(Debug, Serialize)]
pub(in crate::exec) struct WireValue<'a> {
    pub(in crate::exec) name: &'a str,
    pub(in crate::exec) limit: u64,
}
