//! Child sessions: which ones a step has started, and what came of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::UtcMillis;
use crate::id::{AgentId, Position, RunId, SessionId};
use crate::llm::Spend;
use crate::step::Failure;

use super::digest::Digest;
use super::end::End;
use super::{Session, StepRef};

/// The step that started a session: see [`Cx::call`](crate::Cx::call).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ParentSession {
    /// The agent of the parent.
    pub agent: AgentId,
    /// The session of the parent.
    pub session: SessionId,
    /// The run of the parent that started the child.
    pub run: RunId,
    /// The entry into the step.
    pub position: Position,
    /// The item, in a step that has items.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// How many sessions are above the child.
    pub depth: u32,
    /// The context of the step's span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<BTreeMap<String, String>>,
}

/// A child session is about to start, or a run of it settled before its turn was over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChildAt {
    /// Its key.
    #[serde(rename = "k")]
    pub key: String,
    /// The item that started it, in a step that has items.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// Its agent.
    pub agent: AgentId,
    /// The session.
    pub session: SessionId,
    /// The digest of its input.
    pub input: Digest,
    /// What it has spent so far, which counts as spent by the parent.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub spent: Spend,
    /// When it is to be resumed though no answer comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<UtcMillis>,
    /// When it was started, by the clock of the process that did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<UtcMillis>,
}

/// The turn of a child session is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChildDone {
    /// Its key.
    #[serde(rename = "k")]
    pub key: String,
    /// The item that started it, in a step that has items.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// The run that ended it.
    pub run: RunId,
    /// How it ended.
    pub end: End,
    /// Its state, if it came to its end.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub state: Value,
    /// How many steps it took.
    pub steps: u64,
    /// What it has spent, which counts as spent by the parent.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub spent: Spend,
    /// What its last steps failed with, if they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finally_failure: Option<Arc<Failure>>,
}

fn is_nothing(spent: &Spend) -> bool {
    *spent == Spend::default()
}

/// What is known of a child.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct KnownChild {
    pub(crate) at: ChildAt,
    /// How many children were started before under its key.
    #[serde(default)]
    pub(crate) before: u32,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) done: Option<Box<ChildDone>>,
    /// The last attempt waits for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) waits: bool,
    /// It failed, and so did the attempt: the next one starts another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) given_up: bool,
}

impl KnownChild {
    pub(super) fn new(at: ChildAt, before: u32) -> Self {
        Self { at, before, done: None, waits: false, given_up: false }
    }

    /// The attempt that it is of has failed.
    pub(super) fn attempt_failed(&mut self) {
        self.waits = false;
        let ended = |done: &ChildDone| matches!(done.end, End::Ended { .. });
        self.given_up |= self.done.as_deref().is_some_and(|done| !ended(done));
    }
}

impl<P: StepRef> Session<P> {
    /// What is known of a child of the step at work, or of an item of it.
    pub(crate) fn child(&self, item: Option<u32>, key: &str) -> Option<&KnownChild> {
        self.effects_at(item)?.child(key)
    }

    /// Whether a step, or an item of it, waits for a child.
    pub(crate) fn waits_for_child(&self, item: Option<u32>) -> bool {
        self.effects_at(item).is_some_and(|table| table.children().any(|child| child.waits))
    }

    /// The children that the step at work and its items wait for.
    pub(crate) fn awaited_children(&self) -> impl Iterator<Item = &KnownChild> {
        let items = self.items.iter().flat_map(|items| items.work.values());
        let tables = std::iter::once(&self.effects).chain(items.map(|work| &work.effects));
        tables.flat_map(|table| table.children()).filter(|child| child.waits)
    }

    /// The children that the step at work and its items have started, and that are not known to be over.
    pub(crate) fn open_children(&self) -> impl Iterator<Item = &ChildAt> {
        let items = self.items.iter().flat_map(|items| items.work.values());
        let tables = std::iter::once(&self.effects).chain(items.map(|work| &work.effects));
        let open = tables.flat_map(|table| table.children()).filter(|child| child.done.is_none());
        open.map(|child| &child.at)
    }

    /// The parent that has yet to be notified that the turn is over.
    pub(crate) fn owes_notice(&self) -> Option<&ParentSession> {
        let owes = self.settled.as_ref().is_some_and(|settled| settled.notify) && !self.notified;
        self.parent.as_ref().filter(|_| owes)
    }

    /// When the first of a step's children is due, or of an item's, that it waits for.
    pub(super) fn child_due(&self, item: Option<u32>) -> Option<UtcMillis> {
        let children = self.effects_at(item)?.children();
        children.filter(|child| child.waits).filter_map(|child| child.at.due).min()
    }
}
