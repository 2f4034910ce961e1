//! The data exchanged with a worker.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::model::{Entity, Unit, UnitKey};

/// The serialized form of a unit, opaque to the host.
pub type Blob = Arc<[u8]>;

/// How to move live values, in this order: drop, stash, forget, alias, unstash, load.
#[derive(Clone, Debug, Default)]
pub struct Sync {
    /// Entities to remove and discard.
    pub drop: Vec<Entity>,
    /// Units to move out of the namespace and keep in the worker.
    pub stash: Vec<UnitKey>,
    /// Stashed units to discard.
    pub forget: Vec<UnitKey>,
    /// Pairs of tokens: the first now refers to the object of the second.
    pub alias: Vec<(Arc<str>, Arc<str>)>,
    /// Stashed units to move back, with the members to restore.
    pub unstash: Vec<Unstash>,
    /// Units to load from their blobs, referenced units first.
    pub load: Vec<Load>,
    /// Sources of steps whose functions may be loaded, for tracebacks through them.
    pub sources: Vec<(Arc<str>, Arc<str>)>,
    /// The present texts of steps that ran with another layout of the same code, after their sources.
    /// What is live or loaded shows their lines from here on.
    pub moved: Vec<(Arc<str>, Arc<str>)>,
    /// All names in the order in which the namespace has to hold them after these moves, where a step may see that.
    pub order: Vec<Entity>,
}

impl Sync {
    /// Whether nothing moves.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.drop.is_empty()
            && self.stash.is_empty()
            && self.forget.is_empty()
            && self.alias.is_empty()
            && self.unstash.is_empty()
            && self.load.is_empty()
            && self.sources.is_empty()
            && self.moved.is_empty()
            && self.order.is_empty()
    }
}

/// A stashed unit to move back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Unstash {
    /// The unit.
    pub key: UnitKey,
    /// The members to restore. The others are discarded.
    pub members: Vec<Entity>,
}

/// A unit to load.
#[derive(Clone, Debug)]
pub struct Load {
    /// The version that it becomes.
    pub key: UnitKey,
    /// All members of the blob, in order.
    pub members: Vec<Entity>,
    /// The members to restore.
    pub take: Vec<Entity>,
    /// The serialized form.
    pub blob: Blob,
    /// The blob's references, by index.
    pub refs: Vec<Entity>,
}

/// The result of a [`Sync`].
#[derive(Clone, Debug, Default)]
pub struct Synced {
    /// Units that failed to load, and why. None of their members is live.
    pub failed: Vec<(UnitKey, String)>,
}

/// One step to run.
#[derive(Clone, Debug)]
pub struct RunStep<'a> {
    /// A number never used before in this graph. Keys and tokens are derived from it.
    pub seq: u64,
    /// The step's id, for tracebacks.
    pub step: &'a str,
    /// Its source.
    pub source: &'a str,
    /// Binds this name to the value of this JSON text instead of running the source.
    pub bind: Option<(&'a str, &'a str)>,
    /// Clock and entropy readings to replay.
    pub readings: Option<&'a [Json]>,
}

/// What an earlier run of a step bound, to be bound again without running it.
///
/// Only what shares objects with it has changed since. What the step read has not: what the names share with
/// that is taken from the live values, and the rest from the stored ones.
#[derive(Clone, Debug)]
pub struct Graft<'a> {
    /// A number never used before in this graph. Keys and tokens are derived from it.
    pub seq: u64,
    /// The units that the step made, with the names that it bound as those to restore.
    pub units: &'a [Load],
    /// The members of these units that it read. They are live, with the content of then.
    pub onto: &'a [Entity],
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
    /// It completed.
    Ok,
    /// It raised an exception, or did not compile.
    Raised {
        /// The exception's type, such as `NameError`.
        #[serde(rename = "type")]
        type_name: String,
        /// Its message.
        message: String,
        /// The line of the step it passed through, from 1.
        #[serde(default)]
        line: Option<usize>,
        /// The frames in steps, outermost first.
        #[serde(default)]
        frames: Vec<Frame>,
        /// The missing name, for a `NameError`.
        #[serde(default)]
        name: Option<String>,
        /// Whether the source failed to compile.
        #[serde(default)]
        syntax: bool,
    },
    /// It exceeded its time limit.
    Timeout {
        /// The limit.
        limit: Duration,
    },
    /// It exceeded its time limit while it mostly waited, for something or for a busy machine.
    Stalled {
        /// The limit.
        limit: Duration,
    },
    /// It exceeded its memory limit and killed its worker.
    OutOfMemory,
    /// The isolation stopped it.
    Denied {
        /// What it attempted.
        what: String,
    },
    /// The worker died during the step.
    Crashed {
        /// The signal that killed it, if any.
        signal: Option<i32>,
        /// The exit code otherwise.
        code: Option<i32>,
    },
    /// The worker violated the protocol.
    Protocol {
        /// How.
        what: String,
    },
    /// The executor does not support the program.
    Unsupported {
        /// What it lacks.
        feature: String,
    },
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("it ended well"),
            Self::Raised { type_name, message, line, .. } => {
                f.write_str(type_name)?;
                if !message.is_empty() {
                    write!(f, ": {message}")?;
                }
                line.map_or(Ok(()), |line| write!(f, " (line {line})"))
            }
            Self::Timeout { limit } => write!(f, "it exceeded its time limit of {limit:?}"),
            Self::Stalled { limit } => {
                write!(f, "it exceeded its time limit of {limit:?}, and mostly waited")
            }
            Self::OutOfMemory => f.write_str("it ran out of memory"),
            Self::Denied { what } => write!(f, "it was denied {what}"),
            Self::Crashed { signal: Some(signal), .. } => {
                write!(f, "the worker was killed by signal {signal}")
            }
            Self::Crashed { code: Some(code), .. } => write!(f, "the worker exited with {code}"),
            Self::Crashed { .. } => f.write_str("the worker died"),
            Self::Protocol { what } => write!(f, "the worker violated the protocol: {what}"),
            Self::Unsupported { feature } => write!(f, "this worker does not support {feature}"),
        }
    }
}

impl Ending {
    /// Whether the step completed.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Ok)
    }

    /// Whether the cause was outside the step: a signal from another process, the OOM killer, a busy
    /// machine. The step may end differently the next time.
    #[must_use]
    pub fn is_accident(&self) -> bool {
        // Hang-up, interrupt, quit, kill and termination are sent to a process. It raises the
        // others itself.
        matches!(
            self,
            Self::OutOfMemory
                | Self::Stalled { .. }
                | Self::Crashed { signal: Some(1 | 2 | 3 | 9 | 15), .. }
        )
    }

    /// Whether two runs of a step ended alike. How busy the machine is decides whether a step that exceeds
    /// its time limit computes or waits for most of it.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let late = |ending: &Self| match ending {
            Self::Timeout { limit } | Self::Stalled { limit } => Some(*limit),
            _ => None,
        };
        self == other || late(self).is_some_and(|limit| late(other) == Some(limit))
    }

    /// Whether there was not enough memory, which a fresh worker may have.
    pub(crate) fn lacks_memory(&self) -> bool {
        match self {
            Self::Raised { type_name, .. } => type_name.ends_with("MemoryError"),
            other => matches!(other, Self::OutOfMemory),
        }
    }
}

/// A line of a step that an exception passed through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The step's id.
    pub step: String,
    /// The line in it, from 1.
    pub line: usize,
    /// The function, `<module>` at the top level.
    pub function: String,
}

/// How a step changed an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wrote {
    /// It is bound to another object.
    Bound,
    /// The same object has other content.
    Mutated,
    /// It is gone.
    Deleted,
}

/// An operation of a step on untracked state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Untracked {
    /// The operation.
    pub what: String,
    /// The line in the step, from 1, if known.
    #[serde(default)]
    pub line: Option<usize>,
}

impl Untracked {
    /// An operation at an unknown line.
    pub(crate) fn of(what: String) -> Self {
        Self { what, line: None }
    }
}

impl fmt::Display for Untracked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        self.line.map_or(Ok(()), |line| write!(f, " (line {line})"))
    }
}

/// What a step printed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The bytes, up to the limit.
    pub bytes: Vec<u8>,
    /// The number of bytes beyond the limit.
    pub dropped: u64,
}

/// What a step did.
#[derive(Clone, Debug)]
pub struct Ran {
    /// How it ended.
    pub ending: Ending,
    /// Whether the worker died, and all live values with it.
    pub lost: bool,
    /// What it read.
    pub reads: BTreeSet<Entity>,
    /// What it found outside the state.
    pub external: BTreeMap<Entity, Option<String>>,
    /// What it changed.
    pub wrote: BTreeMap<Entity, Wrote>,
    /// The names at the end of the namespace that it bound, in the order of the namespace, if there are several.
    /// If this is left empty, names that are new are ordered by their text.
    pub order: Vec<Entity>,
    /// Every unit that is new, changed or regrouped, with its serialized form.
    pub units: Vec<(Unit, Option<Blob>)>,
    /// After a failure: the entities that are no longer reliable.
    pub dirty: BTreeSet<Entity>,
    /// The steps whose text it looked at, by their ids: to show a traceback, or a function.
    pub shown: BTreeSet<Arc<str>>,
    /// Its untracked operations.
    pub untracked: Vec<Untracked>,
    /// Its clock and entropy readings, in order.
    pub readings: Vec<Json>,
    /// Whether it read a clock or entropy.
    pub clock: bool,
    /// Standard output.
    pub stdout: Output,
    /// Standard error.
    pub stderr: Output,
    /// How long the step ran.
    pub wall: Duration,
}

impl Ran {
    /// A step that ended, and did nothing that is known.
    #[must_use]
    pub fn ended(ending: Ending, wall: Duration) -> Self {
        Self {
            ending,
            lost: false,
            reads: BTreeSet::new(),
            external: BTreeMap::new(),
            wrote: BTreeMap::new(),
            order: Vec::new(),
            units: Vec::new(),
            dirty: BTreeSet::new(),
            shown: BTreeSet::new(),
            untracked: Vec::new(),
            readings: Vec::new(),
            clock: false,
            stdout: Output::default(),
            stderr: Output::default(),
            wall,
        }
    }
}

/// Everything that is live.
#[derive(Clone, Debug, Default)]
pub struct Swept {
    /// All units, without blobs.
    pub units: Vec<Unit>,
    /// Unattributed changes: those in the process that no entity accounts for.
    pub unattributed: Vec<String>,
}

/// A value for display.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Its `repr`, up to the limit.
    pub repr: String,
    /// Its type.
    pub type_name: String,
    /// The value as JSON, if it is plain data.
    pub json: Option<Json>,
}
