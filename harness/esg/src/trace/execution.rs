//! One run of one version of a step.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::blobs::{BlobId, StoredValue};
use crate::exec::{Ending, Output, Untracked, Wrote};
use crate::model::{Entity, Fingerprint, UnitKey};
use crate::state::{FileKind, Made};

/// One run of one version of a step: when it ran, how it ended, and its trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Execution {
    /// Its number in this graph. Later executions have higher numbers.
    pub seq: u64,
    /// The replay of the graph that it belongs to.
    pub run: u64,
    /// The step.
    pub step: Arc<str>,
    /// The identity of the code that ran: a hash of its syntax tree.
    pub syntax: Fingerprint,
    /// The source that ran, as written.
    pub source: Arc<str>,
    /// The fingerprint of the worker it ran in:
    /// [`Executor::fingerprint`](crate::Executor::fingerprint).
    pub executor: Arc<str>,
    /// When it started, by the host's clock.
    pub started: SystemTime,
    /// How long it ran.
    pub wall: Duration,
    /// How long moving values to it, inspecting what it made and storing it took.
    #[serde(default)]
    pub host: Duration,
    /// How it ended.
    pub ending: Ending,
    /// Its standard output.
    pub stdout: Output,
    /// Its standard error.
    pub stderr: Output,
    /// What it read and what it changed.
    pub trace: Trace,
}

/// What an execution read and what it changed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Trace {
    /// What it read, with the fingerprint of what it found and the step that last wrote it.
    pub reads: BTreeMap<Entity, Read>,
    /// What it did not read but changed or aliased, through objects shared with what it read. With
    /// the fingerprint from before.
    pub altered: BTreeMap<Entity, Read>,
    /// What it changed.
    pub wrote: BTreeMap<Entity, Wrote>,
    /// The untracked operations it performed.
    pub untracked: Vec<Untracked>,
    /// Whether an earlier step in the same worker performed an untracked operation, which may have
    /// affected this one.
    #[serde(default)]
    pub tainted: bool,
    /// The values it read from clocks and entropy sources, in order.
    pub readings: Vec<Json>,
    /// Whether it read a clock or an entropy source.
    pub clock: bool,
    /// The joint fingerprint of everything read and altered.
    pub(crate) joint: Option<Fingerprint>,
    /// The entities visited for the joint fingerprint, in order.
    pub(crate) visited: Vec<Entity>,
    /// Entities that existed before and are in units that it altered.
    pub(crate) tied: BTreeSet<Entity>,
    /// The unserializable units among what it read or altered.
    #[serde(rename = "holes")]
    pub(crate) unserializable: BTreeSet<UnitKey>,
    /// What was at each path that it wrote without reading: overwriting a directory differs from
    /// overwriting a file.
    #[serde(default)]
    pub(crate) over: BTreeMap<Entity, FileKind>,
    /// Every unit it produced, and where each is stored.
    pub(crate) units: Vec<Arc<Made>>,
    /// Entities that it bound again to the object they were already bound to, with their unit and
    /// the entities that share objects with them.
    #[serde(default)]
    pub(crate) again: Vec<(Entity, Arc<Made>)>,
}

/// What an execution found when it read an entity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Read {
    /// The fingerprint of what it found.
    #[serde(rename = "print")]
    pub fingerprint: Fingerprint,
    /// The step that wrote it last, if any.
    pub by: Option<Arc<str>>,
    /// What it found outside the state.
    pub outside: Option<String>,
}

impl Trace {
    /// The stored values that it refers to.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = BlobId> {
        let again = self.again.iter().map(|(_, made)| made);
        self.units.iter().chain(again).filter_map(|made| match made.stored {
            Some(StoredValue::Blob(id)) => Some(id),
            _ => None,
        })
    }
}

impl Execution {
    /// Whether it performed an untracked operation.
    #[must_use]
    pub fn is_untracked(&self) -> bool {
        !self.trace.untracked.is_empty()
    }

    /// Whether its result may depend on untracked state, its own or its worker's.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.trace.tainted || self.is_untracked()
    }
}
