//! One run of one version of a step.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::blobs::{BlobId, StoredValue};
use crate::exec::{Ending, Output, Untracked, Wrote};
use crate::model::{Entity, Fingerprint, UnitKey};
use crate::state::{FileKind, Joint, Made, Past};

/// One run of one version of a step: when it ran, how it ended, and its trace.
///
/// A step that is kept by a [graft](crate::Executor::graft) has a new one, with what the run that it stands for
/// printed and how long that took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Trace {
    /// What it read, with the fingerprint of what it found and the step that last wrote it.
    pub reads: BTreeMap<Entity, Read>,
    /// What it did not read but changed or aliased, through objects shared with what it read. With
    /// the fingerprint from before.
    pub altered: BTreeMap<Entity, Read>,
    /// What it changed.
    pub wrote: BTreeMap<Entity, Wrote>,
    /// The names at the end of the namespace, in order, if it bound several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) order: Vec<Entity>,
    /// The steps whose text it looked at.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) shown: BTreeSet<Arc<str>>,
    /// The untracked operations it performed.
    pub untracked: Vec<Untracked>,
    /// Whether an earlier step in the same worker performed an untracked operation. Only of
    /// executions that do not record which: these are not valid any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) tainted: bool,
    /// The untracked operations of the steps before it, which may have affected it.
    #[serde(default)]
    pub(crate) residue: Option<Fingerprint>,
    /// Everything that ran before it, if it performed an untracked operation.
    #[serde(default)]
    pub(crate) past: Option<Fingerprint>,
    /// The values it read from clocks and entropy sources, in order.
    pub readings: Vec<Json>,
    /// Whether it read a clock or an entropy source.
    pub clock: bool,
    /// The joint fingerprint of everything read and altered.
    pub(crate) joint: Option<Fingerprint>,
    /// The joint fingerprint of what it read alone, if it altered more and did nothing but bind names to values
    /// that are stored: these can be bound without running it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) inputs: Option<Joint>,
    /// The mark of its opaque values, if that is of another execution: one that stands, and whose
    /// values it only makes again. It may read less, as what it imports is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mark: Option<Fingerprint>,
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
    /// What the fingerprints of its opaque values have in place of their content.
    pub(crate) fn mark(&self) -> Option<Fingerprint> {
        self.mark.or(self.joint)
    }

    /// Whether it did nothing but bind names that it did not read to values that are stored.
    pub(crate) fn only_binds(&self) -> bool {
        let is_name = |entity: &Entity| matches!(entity, Entity::Name(_));
        let names = |made: &Arc<Made>| made.unit.members.iter().all(|one| is_name(&one.entity));
        let binds = |(entity, wrote): (&Entity, &Wrote)| {
            is_name(entity) && *wrote == Wrote::Bound && !self.reads.contains_key(entity)
        };
        self.untracked.is_empty()
            && self.readings.is_empty()
            && !self.clock
            && self.again.is_empty()
            && !self.units.is_empty()
            && self.units.iter().all(|made| made.stored.is_some() && names(made))
            && self.wrote.iter().all(binds)
    }

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

    /// Whether it failed or printed something at a line of the step, or looked at its text.
    pub(crate) fn shows_lines_of(&self, step: &str) -> bool {
        let failed = match &self.ending {
            Ending::Raised { frames, .. } => frames.iter().any(|frame| *frame.step == *step),
            _ => false,
        };
        let file = format!("<step:{step}>");
        let outputs = [&self.stdout, &self.stderr];
        failed
            || self.trace.shown.contains(step)
            || outputs.iter().any(|one| String::from_utf8_lossy(&one.bytes).contains(&file))
    }

    /// What came before the step after it.
    pub(crate) fn follows(&self, past: Past) -> Past {
        past.after(self.identity(), self.is_untracked())
    }

    /// A fingerprint of what ran, and on what.
    pub(crate) fn identity(&self) -> Fingerprint {
        let joint = self.trace.joint.map(|joint| *joint.bytes()).unwrap_or_default();
        Fingerprint::of(&[self.step.as_bytes(), self.syntax.bytes(), &joint])
    }
}
