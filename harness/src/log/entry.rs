//! The entries of a log.
//!
//! An entry is one JSON object: `t` is the time, `u` what was spent since the entry before (left
//! out if nothing was), and one more key, the kind, holds the rest:
//!
//! ```json
//! {"t":1763729326123,"commit":{"n":"act","o":[{"push":{"p":["talk"],"v":"hi"}}]}}
//! ```
//!
//! What can be told from the entries before is left out: the position at which something happens is
//! that of the step at work.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::clock::UtcMillis;
use crate::graph::Limit;
use crate::id::{AgentId, InterruptId, RunId, Seq, SessionId};
use crate::llm::Spend;
use crate::state::{Op, Schema};
use crate::step::{EffectScope, Failure, Interrupt};
use crate::store::InboxSeq;

use super::digest::{Digest, Salt};
use super::saved::Saved;

/// One entry of a session's log.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// When it was made, by the writer's clock. Informational: order is the seq alone.
    pub at: UtcMillis,
    /// What was spent since the entry before.
    pub spent: Option<Spend>,
    /// What happened.
    pub kind: EntryKind,
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EntryKind {
    /// `open`: the session begins.
    Opened(Box<Opened>),
    /// `adopt`: another version of the loop or of the state took the session over.
    Adopted(Box<Adopted>),
    /// `run`: a run began.
    RunStarted(Box<RunStarted>),
    /// `recover`: the run took over from one that did not settle.
    Recovered(Recovered),
    /// `attempt`: a step failed and is tried again.
    Attempt(Box<AttemptFailed>),
    /// `intent`: an effect that must happen at most once is about to.
    Intent(Intent),
    /// `effect`: an effect happened.
    Effect(EffectDone),
    /// `ask`: questions wait.
    Asked(Asked),
    /// `resolve`: a question no longer waits.
    Resolved(Box<Resolved>),
    /// `commit`: a step is done.
    Committed(Committed),
    /// `divert`: a step failed, and an error step takes over.
    Diverted(Box<Diverted>),
    /// `finish`: the turn ends by way of its last steps.
    Finishing(Box<Finishing>),
    /// `settle`: the run settled.
    Settled(Box<Settled>),
    /// `snapshot`: what all entries up to here add up to. Opaque, and large.
    Snapshot(Snapshot),
    /// A kind that this version knows by name and cannot take up.
    Reserved(Reserved),
}

impl EntryKind {
    /// The key under which it is stored.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Opened(_) => "open",
            Self::Adopted(_) => "adopt",
            Self::RunStarted(_) => "run",
            Self::Recovered(_) => "recover",
            Self::Attempt(_) => "attempt",
            Self::Intent(_) => "intent",
            Self::Effect(_) => "effect",
            Self::Asked(_) => "ask",
            Self::Resolved(_) => "resolve",
            Self::Committed(_) => "commit",
            Self::Diverted(_) => "divert",
            Self::Finishing(_) => "finish",
            Self::Settled(_) => "settle",
            Self::Snapshot(_) => "snapshot",
            Self::Reserved(reserved) => &reserved.kind,
        }
    }
}

/// The session begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Opened {
    /// The version of the format.
    #[serde(rename = "v")]
    pub format: u32,
    /// The agent whose session it is.
    pub agent: AgentId,
    pub(crate) salt: Salt,
    /// The loop that began it.
    pub graph: Fingerprint,
    /// What its state is made of.
    pub schema: Schema,
    /// The state before the first input.
    pub state: Value,
    /// The session it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Origin>,
}

/// Where a fork comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Origin {
    /// The session.
    pub session: SessionId,
    /// The last entry that both have in common.
    pub seq: Seq,
}

/// What a loop is made of, as far as its sessions depend on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Fingerprint {
    /// The name of the harness.
    pub name: String,
    /// A hash of the steps and all that leads from one to another.
    pub wiring: String,
    /// The steps, and what kind each is.
    pub steps: BTreeMap<String, StepKind>,
}

/// The kinds of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepKind {
    /// It has a body.
    Run,
    /// It only decides.
    Decide,
    /// It asks.
    Gate,
    /// It is switched off.
    Off,
}

/// Another version took the session over. What did not change is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Adopted {
    /// The loop from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<Fingerprint>,
    /// What the state is made of from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Schema>,
    /// The state in its new form.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "present")]
    pub state: Option<Value>,
    /// The name that the step at work has from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Arc<str>>,
    /// Steps that were entered in this turn and have another name from now on, the step at work
    /// among them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub renamed: BTreeMap<Arc<str>, Arc<str>>,
}

/// A run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunStarted {
    /// The run.
    pub run: RunId,
    /// Where a new turn starts; `None` if the run goes on with the turn at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Arc<str>>,
    /// What the reducers made of the turn's input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ops: Vec<Op>,
    /// The key under which the input was given, so that it is taken once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The letters taken so far, the input among them if it came as one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub mail: InboxSeq,
    /// An opaque map, such as a trace's parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Map<String, Value>>,
}

impl RunStarted {
    /// A run that goes on with the turn at hand.
    pub(crate) fn resumed(run: RunId) -> Self {
        let mail = InboxSeq::default();
        Self { run, start: None, ops: Vec::new(), input: None, mail, trace: None }
    }

    /// A run that begins a turn.
    pub(crate) fn turn(
        run: RunId,
        start: Arc<str>,
        ops: Vec<Op>,
        input: Option<String>,
        mail: InboxSeq,
    ) -> Self {
        Self { run, start: Some(start), ops, input, mail, trace: None }
    }

    /// The same, of this trace.
    pub(crate) fn traced(self, trace: Option<Map<String, Value>>) -> Self {
        Self { trace, ..self }
    }
}

/// A run took over from one that did not settle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Recovered {
    /// The run that takes over.
    pub run: RunId,
}

/// A step failed and is tried again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AttemptFailed {
    /// The attempt that failed, from 1.
    pub n: u32,
    /// What it failed with.
    pub failure: Failure,
    /// When it is tried again.
    pub retry_at: UtcMillis,
}

/// An effect that must happen at most once is about to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Intent {
    /// Its key.
    #[serde(rename = "k")]
    pub key: String,
    /// How long its result will be kept.
    #[serde(rename = "s", default, skip_serializing_if = "is_position")]
    pub scope: EffectScope,
}

/// An effect happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EffectDone {
    /// Its key.
    #[serde(rename = "k")]
    pub key: String,
    /// How long its result is kept.
    #[serde(rename = "s", default, skip_serializing_if = "is_position")]
    pub scope: EffectScope,
    /// Its result.
    #[serde(rename = "v")]
    pub value: Value,
}

/// Questions wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Asked {
    /// The questions, new ones only.
    pub questions: Vec<Interrupt>,
}

/// A question no longer waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Resolved {
    /// The question.
    pub id: InterruptId,
    /// What became of it.
    #[serde(flatten)]
    pub resolution: Resolution,
    /// The letters taken so far, this one among them if it came as one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub mail: InboxSeq,
}

/// What became of a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "as", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Resolution {
    /// It was answered.
    Answered {
        /// The answer.
        value: Value,
        /// The answer's digest.
        digest: Digest,
        /// Who answered, if the answer says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// When the answer was given.
        at: UtcMillis,
    },
    /// It was not answered in time.
    Expired,
    /// It is no longer asked.
    Withdrawn,
}

impl Resolution {
    /// Who answered, if anybody did and says so.
    #[must_use]
    pub fn by(&self) -> Option<String> {
        match self {
            Self::Answered { by, .. } => by.clone(),
            Self::Expired | Self::Withdrawn => None,
        }
    }
}

/// A step is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Committed {
    /// The step that comes next; `None` at the end of the turn.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Arc<str>>,
    /// What the reducers did.
    #[serde(rename = "o", default, skip_serializing_if = "Vec::is_empty")]
    pub ops: Vec<Op>,
}

/// A step failed, and an error step takes over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Diverted {
    /// What it failed with.
    pub failure: Failure,
    /// The error step.
    #[serde(rename = "n")]
    pub next: Arc<str>,
}

/// The turn ends by way of its last steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finishing {
    /// How it will have ended.
    pub ending: HowEnded,
    /// The first of the last steps.
    #[serde(rename = "n")]
    pub next: Arc<str>,
    /// How long the turn has run so far, in milliseconds.
    #[serde(default, skip_serializing_if = "zero")]
    pub active_ms: u64,
}

/// The ways a turn ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "as", rename_all = "snake_case")]
#[non_exhaustive]
pub enum HowEnded {
    /// The loop came to its end.
    Ended {
        /// The enum and the signal it ended with, if a route ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<(String, String)>,
    },
    /// A step failed for good.
    Failed {
        /// Why.
        failure: Box<Failure>,
    },
    /// A budget was reached.
    Exhausted {
        /// Which part of it.
        limit: Limit,
    },
}

/// The run settled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Settled {
    /// How.
    pub how: HowSettled,
    /// What the last steps failed with, if they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finally_failure: Option<Box<Failure>>,
    /// How long the turn has run so far, in milliseconds.
    #[serde(default, skip_serializing_if = "zero")]
    pub active_ms: u64,
    /// How often the step at work was tried at this position, if the turn is not over.
    #[serde(default, skip_serializing_if = "none")]
    pub attempt: u32,
}

/// How a run settled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HowSettled {
    /// The turn is over.
    Turn(HowEnded),
    /// Questions wait.
    Interrupted,
    /// It was asked to stop.
    Stopped,
    /// It was cancelled, or nobody wanted it any more.
    Cancelled,
}

/// What a session adds up to. Read it with
/// [`Sessions::state_at`](crate::Sessions::state_at).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Snapshot(pub(crate) Box<Saved>);

/// An entry of a kind whose name is taken: `timer`, `child`, `child_done`, `planned`, `item`,
/// `notified`. A session that holds one was written by a newer version.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reserved {
    /// The kind.
    pub kind: String,
    /// What it says.
    pub body: Value,
}

fn is_position(scope: &EffectScope) -> bool {
    *scope == EffectScope::Position
}

fn is_zero(mail: &InboxSeq) -> bool {
    mail.0 == 0
}

fn none(number: &u32) -> bool {
    *number == 0
}

fn zero(number: &u64) -> bool {
    *number == 0
}

/// A value that is there, even if it is null.
mod present {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    pub(super) fn serialize<S: Serializer>(
        value: &Option<Value>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        value.serialize(out)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Value>, D::Error> {
        Value::deserialize(from).map(Some)
    }
}
