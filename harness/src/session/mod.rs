//! A session: where its loop stands, what waits, what must not happen twice.
//!
//! A session moves by [`Change`]s alone, and `Session::apply` is the one function that moves it:
//! the running loop applies the changes it makes, and a [`Replay`] applies those of a log. `P` is
//! how a session names a step: by index while it runs, by name in the log. The state is not part of
//! it. It has two projections: the typed value that reducers change, and its JSON, into which the
//! operations that the reducers recorded are folded. Replay runs no code of a loop.

mod apply;
mod change;
mod children;
mod codec;
mod cursor;
mod digest;
mod effects;
mod end;
mod error;
mod fingerprint;
mod interrupts;
mod items;
mod named;
mod replay;
mod spent;
mod timers;
mod visits;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::clock::UtcMillis;
use crate::id::{AgentId, InterruptId, RunId};
use crate::llm::Spend;
use crate::state::Schema;
use crate::step::Interrupt;
use crate::store::{InboxSeq, OpenInterrupt, Phase, SessionSummary};

pub use crate::step::EffectScope;
pub(crate) use change::InputKey;
pub use change::{
    Adopted, Asked, AttemptFailed, Change, Committed, Diverted, Edited, EffectDone, Entry,
    Finishing, Intent, Opened, Origin, Recovered, Reserved, Resolution, Resolved, RunStarted,
};
pub(crate) use children::KnownChild;
pub use children::{ChildAt, ChildDone, ParentSession};
pub(crate) use codec::{check_ops, check_value};
pub(crate) use cursor::{Cursor, Kept};
pub use digest::Digest;
pub(crate) use digest::Salt;
#[cfg(feature = "code")]
pub(crate) use effects::REPLAY;
#[cfg(all(feature = "code", feature = "report"))]
pub(crate) use effects::is_replay;
pub(crate) use effects::{EffectRecord, EffectTable};
pub use end::{End, Settled};
pub use error::{EntryError, MAX_ENTRY, ReplayError};
pub use fingerprint::{Fingerprint, StepKind};
pub(crate) use interrupts::{AskedInterrupt, Interrupts};
pub use items::{ItemDone, ItemResult, Planned};
pub(crate) use items::{ItemWork, Items};
pub(crate) use named::{AsNamed, Names};
pub use replay::Replay;
pub(crate) use replay::{Recorded, fold_change};
pub(crate) use timers::Timers;
pub use timers::{Timer, TimerWait};
#[cfg(test)]
pub(crate) use visits::Visits;

/// The version of the format that this version of the library writes. It reads all up to this one.
pub const FORMAT: u32 = 1;

/// How a session names a step.
pub(crate) trait StepRef: Clone + Ord + Default + fmt::Debug {
    /// Whether a loop has the step.
    fn is_in(&self, graph: &Fingerprint) -> bool;
}

/// The place of the step in the loop at work.
impl StepRef for usize {
    fn is_in(&self, _: &Fingerprint) -> bool {
        true
    }
}

/// The name of the step.
impl StepRef for Arc<str> {
    fn is_in(&self, graph: &Fingerprint) -> bool {
        graph.steps.contains_key(&**self)
    }
}

/// What a session is, apart from its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Session<P: Ord = Arc<str>> {
    #[serde(rename = "v")]
    pub(crate) format: u32,
    pub(crate) agent: AgentId,
    pub(crate) salt: Salt,
    pub(crate) graph: Arc<Fingerprint>,
    pub(crate) schema: Arc<Schema>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<Origin>,
    /// The step that started it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<ParentSession>,
    /// The parent was notified that the turn is over. Not stored: sent again, the message is the same.
    #[serde(skip)]
    pub(crate) notified: bool,
    pub(crate) phase: Phase,
    pub(crate) cursor: Cursor<P>,
    /// Interrupts of the position at work, resolved ones among them.
    #[serde(default, skip_serializing_if = "Interrupts::is_empty")]
    pub(crate) interrupts: Interrupts,
    /// Effects of the position at work.
    #[serde(default, skip_serializing_if = "EffectTable::is_empty")]
    pub(crate) effects: EffectTable,
    /// Timers of the position at work; those of items are with the items.
    #[serde(default, skip_serializing_if = "Timers::is_empty")]
    pub(crate) timers: Timers,
    /// Effects whose scope is the session.
    #[serde(default, skip_serializing_if = "EffectTable::is_empty")]
    pub(crate) session_effects: EffectTable,
    /// The items of the position at work, once they were computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) items: Option<Box<Items>>,
    /// Where to resume after the last steps have run for a turn that is not over.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub(crate) parked: Option<Box<Parked<P>>>,
    /// How many turns have begun.
    pub(crate) turn: u64,
    /// The last run that began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<RunId>,
    /// The key of the turn's input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<String>,
    /// The digest of that input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input_digest: Option<Digest>,
    /// What this turn has spent.
    pub(crate) spent: Spend,
    /// What all turns have spent.
    pub(crate) total: Spend,
    /// How long this turn has run, waiting not counted, in milliseconds.
    #[serde(default, skip_serializing_if = "change::zero")]
    pub(crate) active_ms: u64,
    /// How the last run settled, while none is at work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) settled: Option<Box<Settled>>,
    /// How many runs took over at this position from ones that did not settle.
    #[serde(default)]
    pub(crate) recovered: u32,
    /// The inbox messages applied so far.
    #[serde(default)]
    pub(crate) inbox: InboxSeq,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<Map<String, Value>>,
}

/// A place to come back to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Parked<P: Ord = Arc<str>> {
    pub(crate) cursor: Cursor<P>,
    #[serde(default, skip_serializing_if = "Interrupts::is_empty")]
    pub(crate) interrupts: Interrupts,
    #[serde(default, skip_serializing_if = "EffectTable::is_empty")]
    pub(crate) effects: EffectTable,
    #[serde(default, skip_serializing_if = "Timers::is_empty")]
    pub(crate) timers: Timers,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) items: Option<Box<Items>>,
}

/// A session and its state, whole. Read it with
/// [`Sessions::state_at`](crate::Sessions::state_at).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot<P: Ord = Arc<str>> {
    pub(crate) session: Session<P>,
    pub(crate) state: Value,
}

impl<P: StepRef> Session<P> {
    /// A session that begins.
    pub(crate) fn open(
        agent: AgentId,
        salt: Salt,
        graph: Arc<Fingerprint>,
        schema: Arc<Schema>,
        from: Option<Origin>,
    ) -> Self {
        Self {
            format: FORMAT,
            agent,
            salt,
            graph,
            schema,
            from,
            parent: None,
            notified: false,
            // Its first turn has not begun.
            phase: Phase::Ended,
            cursor: Cursor::not_entered(),
            interrupts: Interrupts::default(),
            effects: EffectTable::default(),
            timers: Timers::default(),
            session_effects: EffectTable::default(),
            items: None,
            parked: None,
            turn: 0,
            run: None,
            input: None,
            input_digest: None,
            spent: Spend::default(),
            total: Spend::default(),
            active_ms: 0,
            settled: None,
            recovered: 0,
            inbox: InboxSeq::default(),
            trace: None,
        }
    }

    /// The interrupts that wait for an answer.
    pub(crate) fn open_interrupts(&self) -> impl Iterator<Item = &Interrupt> {
        self.interrupts.iter().filter(|asked| asked.is_open()).map(|asked| &asked.interrupt)
    }

    /// Whether any interrupt waits for an answer.
    pub(crate) fn is_waiting(&self) -> bool {
        self.interrupts.any_open()
    }

    /// The interrupt of this id, if it was asked at the position at work.
    pub(crate) fn interrupt(&self, id: &InterruptId) -> Option<&AskedInterrupt> {
        self.interrupts.get(id)
    }

    /// The interrupt that a step, or an item of it, asked under a key; of a gate, without one.
    pub(crate) fn asked(&self, item: Option<u32>, key: Option<&str>) -> Option<&AskedInterrupt> {
        self.interrupts.under(item, key)
    }

    /// Whether the last steps of a turn run, and the session goes back from them.
    pub(crate) fn is_parked(&self) -> bool {
        self.parked.is_some()
    }

    /// Whether a step, or an item of it, waits: for an answer or a child, unless a timer that it waits
    /// for as well is due; or for a timer.
    pub(crate) fn waits(&self, item: Option<u32>, now: UtcMillis) -> bool {
        let timer = self.timers_of(item).and_then(Timers::first_due);
        match timer.into_iter().chain(self.child_due(item)).min() {
            Some(due) => due > now,
            None => {
                self.interrupts.of_item(item).any(AskedInterrupt::is_open)
                    || self.waits_for_child(item)
            }
        }
    }

    /// The items that are not done and do not wait.
    pub(crate) fn enterable_items(&self, now: UtcMillis) -> impl Iterator<Item = u32> + '_ {
        let open = self.items.iter().flat_map(|items| items.open());
        open.filter(move |index| !self.waits(Some(*index), now))
    }

    /// Whether the step at work has nothing to do now.
    pub(crate) fn is_idle(&self, now: UtcMillis) -> bool {
        match &self.items {
            None => self.waits(None, now),
            Some(items) => !items.are_done() && self.enterable_items(now).next().is_none(),
        }
    }

    /// When the session is to be resumed though no message comes: an interrupt expires then, or a
    /// timer is due; at once if its parent has yet to be notified.
    pub(crate) fn due(&self) -> Option<UtcMillis> {
        match self.phase {
            Phase::Interrupted | Phase::Waiting => {
                let expiries = self.open_interrupts().filter_map(|it| it.expires_at);
                expiries.chain(self.first_due()).min()
            }
            _ if self.owes_notice().is_some() => Some(UtcMillis(0)),
            _ => None,
        }
    }

    /// What is known of the timers of a step, or of an item of it.
    pub(crate) fn timers_of(&self, item: Option<u32>) -> Option<&Timers> {
        match item {
            None => Some(&self.timers),
            Some(index) => self.item_work(index).map(|work| &work.timers),
        }
    }

    /// The timers that the step at work and its items wait for, each with its item.
    pub(crate) fn timers(&self) -> impl Iterator<Item = (Option<u32>, &Timer)> {
        let items = self.items.iter().flat_map(|items| &items.work);
        let of_items = items.flat_map(|(index, work)| {
            work.timers.waiting().map(move |timer| (Some(*index), timer))
        });
        self.timers.waiting().map(|timer| (None, timer)).chain(of_items)
    }

    /// When the first of them is due, or the first child that they wait for.
    pub(crate) fn first_due(&self) -> Option<UtcMillis> {
        let children = self.awaited_children().filter_map(|child| child.at.due);
        self.timers().map(|(_, timer)| timer.due).chain(children).min()
    }

    /// The effects of a step, or of an item of it.
    fn effects_at(&self, item: Option<u32>) -> Option<&EffectTable> {
        match item {
            None => Some(&self.effects),
            Some(index) => self.item_work(index).map(|work| &work.effects),
        }
    }

    /// How often the step at work, or an item of it, is known to have been tried.
    pub(crate) fn attempts(&self, item: Option<u32>) -> u32 {
        match item {
            None => self.cursor.attempt,
            Some(index) => self.item_work(index).map_or(0, |work| work.attempt),
        }
    }

    /// How many of those were retries, since the last commit or resume.
    pub(crate) fn retries(&self, item: Option<u32>) -> u32 {
        match item {
            None => self.cursor.retries,
            Some(index) => self.item_work(index).map_or(0, |work| work.retries),
        }
    }

    fn item_work(&self, index: u32) -> Option<&ItemWork> {
        self.items.as_ref()?.work.get(&index)
    }

    /// What is known of an effect.
    pub(crate) fn effect(
        &self,
        item: Option<u32>,
        scope: EffectScope,
        key: &str,
    ) -> Option<&EffectRecord> {
        match (scope, item) {
            (EffectScope::Session, _) => self.session_effects.get(key),
            (EffectScope::Position, _) => self.effects_at(item)?.get(key),
        }
    }

    /// The key of an effect of the turn that may have happened, though its result is not recorded.
    pub(crate) fn in_doubt(&self) -> Option<&str> {
        let parked = self.parked.as_deref();
        let items = [self.items.as_ref(), parked.and_then(|it| it.items.as_ref())];
        let works = items.into_iter().flatten().flat_map(|items| items.work.values());
        std::iter::once(&self.effects)
            .chain(parked.map(|parked| &parked.effects))
            .chain(works.map(|work| &work.effects))
            .find_map(EffectTable::in_doubt)
    }

    /// How many milliseconds the turn has run so far, with what was added since.
    pub(crate) fn active_with(&self, since: std::time::Duration) -> u64 {
        let since = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        self.active_ms.saturating_add(since)
    }
}

impl<P: StepRef> Session<P> {
    /// What a store keeps beside the log. `step` is the name of the step at the cursor.
    pub(crate) fn summary(&self, step: &str) -> SessionSummary {
        SessionSummary {
            due: self.due(),
            inbox: self.inbox,
            ..SessionSummary::new(self.agent.clone(), self.phase, step)
        }
    }
}

/// An interrupt as a store knows it.
pub(crate) fn open_in_store(interrupt: &Interrupt) -> OpenInterrupt {
    let expires = interrupt.expires_at;
    OpenInterrupt { expires, ..OpenInterrupt::new(interrupt.id.clone(), interrupt.asked_at) }
}

#[cfg(test)]
mod tests;
