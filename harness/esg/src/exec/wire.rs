//! What goes to a worker and comes back.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::model::{Entity, Unit, UnitKey};

/// The stored form of a unit, opaque to the host.
pub type Blob = Arc<[u8]>;

/// How live values move, in this order: drop, stash, forget, alias, unstash, load.
#[derive(Clone, Debug, Default)]
pub struct Sync {
    /// Taken out of the state and lost.
    pub drop: Vec<Entity>,
    /// Units that leave the namespace and are kept aside.
    pub stash: Vec<UnitKey>,
    /// Stashed units that are lost.
    pub forget: Vec<UnitKey>,
    /// The first token now means the object of the second.
    pub alias: Vec<(Arc<str>, Arc<str>)>,
    /// Stashed units that come back, with the members that do.
    pub unstash: Vec<Unstash>,
    /// Units that are loaded from their blobs, what is referred to before what refers.
    pub load: Vec<Load>,
    /// Sources of steps whose functions may be loaded, for tracebacks through them.
    pub sources: Vec<(Arc<str>, Arc<str>)>,
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
    }
}

/// A stashed unit to bring back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Unstash {
    /// Which.
    pub key: UnitKey,
    /// The members to install; the others are lost.
    pub members: Vec<Entity>,
}

/// A unit to load.
#[derive(Clone, Debug)]
pub struct Load {
    /// The version that it becomes live as.
    pub key: UnitKey,
    /// All members of the blob, in its order.
    pub members: Vec<Entity>,
    /// The members to install.
    pub take: Vec<Entity>,
    /// Its stored form.
    pub blob: Blob,
    /// What the blob's references mean, by index.
    pub refs: Vec<Entity>,
}

/// What became of a [`Sync`].
#[derive(Clone, Debug, Default)]
pub struct Synced {
    /// Units that could not be loaded, and why. Nothing of them is live.
    pub failed: Vec<(UnitKey, String)>,
}

/// One step to run.
#[derive(Clone, Debug)]
pub struct RunStep<'a> {
    /// A number never used before in this graph, from which keys and tokens are minted.
    pub seq: u64,
    /// The step's id, for tracebacks.
    pub step: &'a str,
    /// Its source.
    pub source: &'a str,
    /// Instead of running the source: bind this name to this value.
    pub bind: Option<(&'a str, &'a Json)>,
    /// Clock and entropy readings to give again.
    pub readings: Option<&'a [Json]>,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
    /// It ran to its end.
    Ok,
    /// It raised an exception, or did not compile.
    Raised {
        /// The exception's type, such as `NameError`.
        #[serde(rename = "type")]
        type_name: String,
        /// Its message.
        message: String,
        /// The line of the step, from 1, where it passed through.
        #[serde(default)]
        line: Option<usize>,
        /// The frames in steps, outermost first.
        #[serde(default)]
        frames: Vec<Frame>,
        /// The name that was not there, where that is what happened.
        #[serde(default)]
        name: Option<String>,
        /// Whether the source did not compile.
        #[serde(default)]
        syntax: bool,
    },
    /// It ran longer than it may.
    Timeout {
        /// The limit.
        limit: Duration,
    },
    /// It used more memory than it may, and the worker with it.
    OutOfMemory,
    /// Isolation stopped it.
    Denied {
        /// What it tried.
        what: String,
    },
    /// The worker ended under it.
    Crashed {
        /// The signal, if one ended it.
        signal: Option<i32>,
        /// The exit code otherwise.
        code: Option<i32>,
    },
    /// The worker said something that it must not.
    Protocol {
        /// What.
        what: String,
    },
    /// The executor can not run such a program.
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
            Self::Timeout { limit } => write!(f, "it ran longer than {limit:?}"),
            Self::OutOfMemory => f.write_str("it ran out of memory"),
            Self::Denied { what } => write!(f, "it was denied {what}"),
            Self::Crashed { signal: Some(signal), .. } => {
                write!(f, "the worker died of signal {signal}")
            }
            Self::Crashed { code: Some(code), .. } => write!(f, "the worker exited with {code}"),
            Self::Crashed { .. } => f.write_str("the worker died"),
            Self::Protocol { what } => write!(f, "the worker said what it must not: {what}"),
            Self::Unsupported { feature } => write!(f, "this worker has no {feature}"),
        }
    }
}

impl Ending {
    /// Whether it ran to its end.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Ok)
    }

    /// Whether it was ended from outside: killed by somebody, or by the system for want of memory.
    /// That says nothing of the step, which may end otherwise the next time.
    #[must_use]
    pub fn is_accident(&self) -> bool {
        // Hang-up, interrupt, quit, kill and termination: what is sent to a process. The others are
        // raised by what it does itself.
        matches!(self, Self::OutOfMemory | Self::Crashed { signal: Some(1 | 2 | 3 | 9 | 15), .. })
    }
}

/// A place in a step that an exception passed through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The step's id.
    pub step: String,
    /// The line in it, from 1.
    pub line: usize,
    /// The function, `<module>` outside any.
    pub function: String,
}

/// What a step did to an entity, all in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wrote {
    /// It is another object.
    Bound,
    /// It is the same object with other content.
    Mutated,
    /// It is gone.
    Deleted,
}

/// Something a step touched whose state is not tracked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Untracked {
    /// What.
    pub what: String,
    /// The line in the step, from 1, where known.
    #[serde(default)]
    pub line: Option<usize>,
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
    /// How many more there were.
    pub dropped: u64,
}

/// What a step did.
#[derive(Clone, Debug)]
pub struct Ran {
    /// How it ended.
    pub ending: Ending,
    /// Whether the worker is gone, and everything that was live with it.
    pub lost: bool,
    /// What it looked at.
    pub reads: BTreeSet<Entity>,
    /// What it found in places that are not part of the state.
    pub external: BTreeMap<Entity, Option<String>>,
    /// What it changed.
    pub wrote: BTreeMap<Entity, Wrote>,
    /// Every unit that is new, changed or regrouped, and its stored form.
    pub units: Vec<(Unit, Option<Blob>)>,
    /// After a failure: what can no longer be relied on.
    pub dirty: BTreeSet<Entity>,
    /// What it touched that is not tracked.
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

/// Everything that is live.
#[derive(Clone, Debug, Default)]
pub struct Swept {
    /// Units as a step's would be, without blobs.
    pub units: Vec<Unit>,
    /// Changes in the process that no entity accounts for.
    pub strays: Vec<String>,
}

/// A value, shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Its `repr`, cut at the limit.
    pub repr: String,
    /// Its type.
    pub type_name: String,
    /// It as JSON, if it is plain data.
    pub json: Option<Json>,
}
