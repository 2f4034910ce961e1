//! One run of one version of a step.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::exec::{Ending, Output, Untracked, Wrote};
use crate::model::{Entity, Print, UnitKey};
use crate::state::{FileKind, Made};

/// One run of one version of a step: when, how it ended, and its trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Execution {
    /// Its number in this graph; later executions have higher ones.
    pub seq: u64,
    /// Which replay of the graph it was part of.
    pub run: u64,
    /// The step.
    pub step: Arc<str>,
    /// The identity of the code that ran: a hash of its syntax tree.
    pub syntax: Print,
    /// The source that ran, as written.
    pub source: Arc<str>,
    /// The worker it ran in, as [`Executor::fingerprint`](crate::Executor::fingerprint) tells.
    pub executor: Arc<str>,
    /// When it started, by the clock of the host.
    pub started: SystemTime,
    /// How long it ran.
    pub wall: Duration,
    /// How it ended.
    pub ending: Ending,
    /// What it printed.
    pub stdout: Output,
    /// What it printed to standard error.
    pub stderr: Output,
    /// What it read and what it changed.
    pub trace: Trace,
}

/// What an execution read and what it changed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Trace {
    /// What it looked at, with the print of what it found, and the step that had last written it.
    pub reads: BTreeMap<Entity, Read>,
    /// What it never looked at, and changed or tied to something through objects shared with what it
    /// did look at; with the print from before.
    pub altered: BTreeMap<Entity, Read>,
    /// What it changed, all in all.
    pub wrote: BTreeMap<Entity, Wrote>,
    /// What it touched that is not tracked.
    pub untracked: Vec<Untracked>,
    /// Whether another step had touched what is not tracked in the same worker before: what this one
    /// did may come of that.
    #[serde(default)]
    pub tainted: bool,
    /// Its readings of clocks and entropy, in order.
    pub readings: Vec<Json>,
    /// Whether it read a clock or entropy.
    pub clock: bool,
    /// The print of all that was read and altered, together.
    pub(crate) joint: Option<Print>,
    /// What was visited for it, in order.
    pub(crate) visited: Vec<Entity>,
    /// Entities that existed before and are in units which it altered.
    pub(crate) tied: BTreeSet<Entity>,
    /// The units that could not be stored among what it read or altered.
    pub(crate) holes: BTreeSet<UnitKey>,
    /// What was at the paths that were written unseen: writing over a directory is another thing
    /// than writing over a file.
    #[serde(default)]
    pub(crate) over: BTreeMap<Entity, FileKind>,
    /// Every unit that came out, and where it is stored.
    pub(crate) units: Vec<Arc<Made>>,
    /// What was bound again to the object that it was bound to, with the unit that it is in, and who
    /// shares objects with it.
    #[serde(default)]
    pub(crate) again: Vec<(Entity, Arc<Made>)>,
}

/// How an entity was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Read {
    /// The print of what was found.
    pub print: Print,
    /// The step that had written it last, if one had.
    pub by: Option<Arc<str>>,
    /// What was found outside of the state.
    pub outside: Option<String>,
}

impl Execution {
    /// Whether it touched something whose state is not tracked.
    #[must_use]
    pub fn is_untracked(&self) -> bool {
        !self.trace.untracked.is_empty()
    }

    /// Whether what it did may depend on what is not tracked, by itself or through its worker.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.trace.tainted || self.is_untracked()
    }
}
