//! Everything that can happen to a session.
//!
//! A log stores [`Change`]s and nothing else. The running loop makes the same values: `P` is how it
//! names a step, by index while it runs and by name in the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::clock::UtcMillis;
use crate::id::{AgentId, InterruptId, RunId, Seq, SessionId};
use crate::llm::Spend;
use crate::state::{Op, Schema};
use crate::step::{EffectScope, Failure, Interrupt};
use crate::store::{FormerHolder, InboxSeq};

use super::children::{ChildAt, ChildDone, ParentSession};
use super::digest::{Digest, Salt};
use super::end::{End, Settled};
use super::items::{ItemDone, Planned};
use super::timers::TimerWait;
use super::{Fingerprint, Snapshot};

/// One entry of a session's log: a change, when it happened, and what was spent before it.
///
/// An entry is one JSON object: `t` is the time, `u` what was spent since the entry before (left
/// out if nothing was), and one more key, the kind of the change, holds the rest:
///
/// ```json
/// {"t":1763729326123,"commit":{"n":"act","o":[{"push":{"p":["talk"],"v":"hi"}}]}}
/// ```
///
/// What follows from the entries before is left out: a change happens at the position at work.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Entry<P: Ord = Arc<str>> {
    /// When it was made, by the writer's clock. Informational: order is the seq alone.
    pub at: UtcMillis,
    /// What was spent since the entry before.
    pub spent: Option<Spend>,
    /// What happened.
    pub change: Change<P>,
}

impl<P: Ord> Entry<P> {
    /// An entry made now.
    pub(crate) fn now(change: Change<P>) -> Self {
        Self { at: UtcMillis::now(), spent: None, change }
    }
}

/// What happened to a session.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Change<P: Ord = Arc<str>> {
    /// `open`: the session begins.
    Opened(Box<Opened>),
    /// `adopt`: another version of the loop or of the state takes the session over.
    Adopted(Box<Adopted<P>>),
    /// `run`: a run began.
    RunStarted(Box<RunStarted<P>>),
    /// `recover`: the run takes over from one that did not settle.
    Recovered(Recovered),
    /// `attempt`: a step failed and is tried again.
    Attempt(Box<AttemptFailed>),
    /// `intent`: an effect that must happen at most once is about to.
    Intent(Intent),
    /// `effect`: an effect happened.
    Effect(EffectDone),
    /// `not_done`: an effect that was about to happen did not.
    NotDone(Intent),
    /// `ask`: interrupts wait for an answer.
    Asked(Asked),
    /// `resolve`: an interrupt no longer waits.
    Resolved(Box<Resolved>),
    /// `timer`: an attempt waits for timers or children.
    Timer(TimerWait),
    /// `child`: a child session is about to start, or a run of it settled before its turn was over.
    Child(Box<ChildAt>),
    /// `child_done`: the turn of a child session is over.
    ChildDone(Box<ChildDone>),
    /// `planned`: the items of a step were computed.
    Planned(Planned),
    /// `item`: an item of a step is done.
    Item(ItemDone),
    /// `commit`: a step is done.
    Committed(Committed<P>),
    /// `divert`: a step failed, and an error step takes over.
    Diverted(Box<Diverted<P>>),
    /// `finish`: the turn ends by way of its last steps.
    Finishing(Box<Finishing<P>>),
    /// `settle`: the run settled.
    Settled(Box<Settled>),
    /// `edit`: a person corrected the state of the session at rest.
    Edited(Box<Edited>),
    /// `snapshot`: the session and its state as of here. Opaque, and large.
    Snapshot(Box<Snapshot<P>>),
    /// A kind that this version knows by name and cannot apply.
    Reserved(Reserved),
}

impl<P: Ord> Change<P> {
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
            Self::NotDone(_) => "not_done",
            Self::Asked(_) => "ask",
            Self::Resolved(_) => "resolve",
            Self::Timer(_) => "timer",
            Self::Child(_) => "child",
            Self::ChildDone(_) => "child_done",
            Self::Planned(_) => "planned",
            Self::Item(_) => "item",
            Self::Committed(_) => "commit",
            Self::Diverted(_) => "divert",
            Self::Finishing(_) => "finish",
            Self::Settled(_) => "settle",
            Self::Edited(_) => "edit",
            Self::Snapshot(_) => "snapshot",
            Self::Reserved(reserved) => &reserved.kind,
        }
    }

    /// Whether the change shows in what a store lists of the session.
    pub(crate) fn changes_summary(&self) -> bool {
        matches!(
            self,
            Self::Opened(_)
                | Self::Adopted(_)
                | Self::RunStarted(_)
                | Self::Recovered(_)
                | Self::Settled(_)
        )
    }

    /// What is done to the state, in a change that folds an update, an input or an edit in.
    pub(crate) fn take_ops(&mut self) -> Vec<Op> {
        match self {
            Self::Committed(committed) => std::mem::take(&mut committed.ops),
            Self::RunStarted(started) => std::mem::take(&mut started.ops),
            Self::Edited(edited) => std::mem::take(&mut edited.ops),
            _ => Vec::new(),
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
    pub graph: Arc<Fingerprint>,
    /// What its state is made of.
    pub schema: Arc<Schema>,
    /// The state before the first input.
    pub state: Value,
    /// The session it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Origin>,
    /// The step that started it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentSession>,
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

/// Another version took the session over. What did not change is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Adopted<P: Ord = Arc<str>> {
    /// The loop from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<Arc<Fingerprint>>,
    /// What the state is made of from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Arc<Schema>>,
    /// The state in its new form.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "present")]
    pub state: Option<Value>,
    /// Steps that were entered in this turn and have another name from now on, the step at work
    /// among them.
    #[serde(default = "BTreeMap::new", skip_serializing_if = "BTreeMap::is_empty")]
    pub renamed: BTreeMap<P, P>,
}

/// A run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunStarted<P = Arc<str>> {
    /// The run.
    pub run: RunId,
    /// Where a new turn starts; `None` if the run resumes the turn at hand.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub start: Option<P>,
    /// What the reducers made of the turn's input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ops: Vec<Op>,
    /// The key under which the input was given, so that it is applied once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The digest of that input: another input under the same key is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_digest: Option<Digest>,
    /// The inbox messages applied so far, the input among them if it came as one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inbox: InboxSeq,
    /// An opaque map, such as a trace's parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Map<String, Value>>,
}

/// What identifies an input that has an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InputKey {
    pub(crate) key: String,
    pub(crate) digest: Digest,
}

impl<P> RunStarted<P> {
    /// A run that resumes the turn at hand.
    pub(crate) fn resumed(run: RunId) -> Self {
        let (start, input, input_digest, trace) = (None, None, None, None);
        let inbox = InboxSeq::default();
        Self { run, start, ops: Vec::new(), input, input_digest, inbox, trace }
    }

    /// A run that begins a turn.
    pub(crate) fn turn(
        run: RunId,
        start: P,
        ops: Vec<Op>,
        input: Option<InputKey>,
        inbox: InboxSeq,
    ) -> Self {
        let (input, input_digest) = input.map(|it| (it.key, it.digest)).unzip();
        Self { run, start: Some(start), ops, input, input_digest, inbox, trace: None }
    }
}

/// The run takes over from one that did not settle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Recovered {
    /// The run that takes over.
    pub run: RunId,
    /// What the store knows of the process whose run did not settle.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub former: FormerHolder,
}

/// A step, or an item of it, failed and is tried again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AttemptFailed {
    /// The attempt that failed, from 1.
    pub n: u32,
    /// The item that failed, in a step that has items.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// What it failed with.
    pub failure: Arc<Failure>,
    /// When it is tried again.
    pub retry_at: UtcMillis,
}

/// An effect that must happen at most once is about to, or did not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Intent {
    /// Its key.
    #[serde(rename = "k")]
    pub key: String,
    /// The item that makes it, in a step that has items.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
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
    /// The item that made it, in a step that has items.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// How long its result is kept.
    #[serde(rename = "s", default, skip_serializing_if = "is_position")]
    pub scope: EffectScope,
    /// Its result.
    #[serde(rename = "v")]
    pub value: Value,
}

/// Interrupts wait for an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Asked {
    /// The interrupts, new ones only.
    pub interrupts: Vec<Interrupt>,
}

/// An interrupt no longer waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Resolved {
    /// The interrupt.
    pub id: InterruptId,
    /// How it was resolved.
    #[serde(flatten)]
    pub resolution: Resolution,
    /// The inbox messages applied so far, this one among them if it came as one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inbox: InboxSeq,
}

/// How an interrupt was resolved.
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
        /// The context of the span in which it was given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<BTreeMap<String, String>>,
    },
    /// It was not answered in time.
    Expired,
    /// It is no longer asked.
    Withdrawn,
}

impl Resolution {
    /// Who answered, if it was answered and the answer says.
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
pub struct Committed<P = Arc<str>> {
    /// The step that comes next; `None` at the end of the turn.
    #[serde(rename = "n", default = "none", skip_serializing_if = "Option::is_none")]
    pub next: Option<P>,
    /// What the reducers did.
    #[serde(rename = "o", default, skip_serializing_if = "Vec::is_empty")]
    pub ops: Vec<Op>,
}

/// A step failed, and an error step takes over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Diverted<P = Arc<str>> {
    /// What it failed with.
    pub failure: Arc<Failure>,
    /// The error step.
    #[serde(rename = "n")]
    pub next: P,
}

/// The turn ends by way of its last steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finishing<P = Arc<str>> {
    /// How it will have ended.
    pub end: End,
    /// The first of the last steps.
    #[serde(rename = "n")]
    pub next: P,
    /// How long the turn has run so far, in milliseconds.
    #[serde(default, skip_serializing_if = "zero")]
    pub active_ms: u64,
}

/// A person corrected the state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Edited {
    /// Who did it.
    pub by: String,
    /// Why, in their words.
    pub why: String,
    /// What was done to the state.
    #[serde(rename = "o", default, skip_serializing_if = "Vec::is_empty")]
    pub ops: Vec<Op>,
}

impl Edited {
    pub(crate) fn new(by: String, why: String, ops: Vec<Op>) -> Self {
        Self { by, why, ops }
    }
}

/// An entry of a kind whose name is reserved: `notified`. A session that holds one was written by a
/// newer version.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reserved {
    /// The kind.
    pub kind: String,
    /// What it holds.
    pub body: Value,
}

fn is_position(scope: &EffectScope) -> bool {
    *scope == EffectScope::Position
}

fn is_unknown(former: &FormerHolder) -> bool {
    *former == FormerHolder::Unknown
}

fn is_zero(inbox: &InboxSeq) -> bool {
    inbox.0 == 0
}

pub(super) fn zero(number: &u64) -> bool {
    *number == 0
}

/// A default that asks nothing of the type.
fn none<T>() -> Option<T> {
    None
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
