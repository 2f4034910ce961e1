//! What all steps of one run share with its driver: the session, the journal, the observers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;

use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::clock::UtcMillis;
use crate::graph::{Budget, Graph, Wiring};
use crate::id::SessionId;
use crate::journal::{Broken, Journal, When, json_size};
use crate::llm::Spend;
use crate::observe::{EventKind, Fanout};
use crate::session::{Change, Entry, Session};
use crate::state::Schema;
use crate::step::{EffectScope, Ids, Place, StepError};

use super::elsewhere::Elsewhere;
use super::keys::ItemKeys;
use super::parent::Parent;
use super::slots::{Slots, StaysOpen, Work};
use super::spans::Spans;
use super::stop::{StopSignal, Wake};

/// What all steps of one run share with its driver.
pub(crate) struct RunCore {
    pub(crate) ids: Ids,
    pub(crate) graph: Graph,
    pub(crate) fanout: Fanout,
    pub(crate) stop: StopSignal,
    /// Writes the session's log, where it has one.
    pub(crate) journal: Option<Journal>,
    /// The step that started the run, if there is one.
    pub(super) parent: Option<Parent>,
    /// None if the run has no spans but its own.
    pub(crate) spans: Option<Box<Spans>>,
    /// None if its children run where it runs.
    pub(crate) elsewhere: Option<Arc<dyn Elsewhere>>,
    /// Whether a worker runs it.
    pub(crate) worker: bool,
    live: Mutex<Live>,
    pub(super) item_keys: ItemKeys,
    /// What the turn may spend.
    pub(super) budget: OnceLock<Budget>,
    pub(super) effect_ended: Notify,
}

/// The session at work, and what the attempts in flight do.
pub(super) struct Live {
    pub(super) session: Session<usize>,
    /// What was spent since the last entry.
    pub(super) unrecorded: Option<Box<Spend>>,
    /// What children at work have spent since the last entry that counts it.
    pub(super) children: BTreeMap<SessionId, Spend>,
    pub(super) slots: Slots,
}

impl RunCore {
    pub(crate) fn new(
        ids: Ids,
        graph: Graph,
        fanout: Fanout,
        stop: StopSignal,
        journal: Option<Journal>,
        session: Session<usize>,
        parent: Option<Parent>,
    ) -> Self {
        let (unrecorded, children, slots) = (None, BTreeMap::new(), Slots::default());
        let live = Mutex::new(Live { session, unrecorded, children, slots });
        let (budget, effect_ended) = (OnceLock::new(), Notify::new());
        let (spans, elsewhere, worker) = (None, None, false);
        Self {
            ids,
            graph,
            fanout,
            stop,
            journal,
            parent,
            spans,
            elsewhere,
            worker,
            live,
            item_keys: ItemKeys::default(),
            budget,
            effect_ended,
        }
    }

    // A step locks it three times, and a call costs a tenth of a step that does nothing.
    #[inline]
    pub(super) fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to the spend of the run, and of the run whose step started it.
    pub(super) fn spend(&self, spend: &Spend) {
        **self.live().unrecorded.get_or_insert_default() += *spend;
        if let Some(parent) = &self.parent {
            parent.charge(spend);
        }
    }

    /// Whether no event needs to be created.
    #[inline]
    pub(crate) fn is_silent(&self) -> bool {
        self.fanout.is_silent() && self.spans.is_none()
    }

    pub(crate) fn wiring(&self) -> &Wiring {
        &self.graph.wiring
    }

    /// Looks at the session.
    pub(crate) fn session<T>(&self, look: impl FnOnce(&Session<usize>) -> T) -> T {
        look(&self.live().session)
    }

    /// Applies a change to the session and, if there is a journal, buffers it for the log.
    ///
    /// # Errors
    /// The log cannot take it. Nothing more can be recorded then.
    pub(crate) fn record(&self, change: Change<usize>) -> Result<(), Broken> {
        self.record_in(&mut self.live(), change)
    }

    /// The same for a change that observers hear of, once it is in the log, where there is one.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub(crate) fn record_as(
        self: &Arc<Self>,
        place: Place,
        change: Change<usize>,
        events: impl FnOnce() -> Vec<EventKind>,
    ) -> Result<(), Broken> {
        let events = if self.is_silent() { Vec::new() } else { events() };
        // Effects of other items do not come between the change and its events.
        let mut live = self.live();
        self.record_in(&mut live, change)?;
        if self.journal.is_none() {
            drop(live);
        }
        events.into_iter().for_each(|kind| self.publish_recorded(place, kind));
        Ok(())
    }

    /// Records the change that `decide` makes of the session; or what it says instead.
    ///
    /// # Errors
    /// Inside, as [`record`](Self::record).
    pub(super) fn record_where<N>(
        &self,
        decide: impl FnOnce(&Session<usize>) -> Result<Change<usize>, N>,
    ) -> Result<Result<(), Broken>, N> {
        let mut live = self.live();
        let change = decide(&live.session)?;
        Ok(self.record_in(&mut live, change))
    }

    pub(super) fn record_in(&self, live: &mut Live, change: Change<usize>) -> Result<(), Broken> {
        let leaves = matches!(
            change,
            Change::Committed(_)
                | Change::Diverted(_)
                | Change::Finishing(_)
                | Change::RunStarted(_)
        );
        let spent = live.unrecorded.take().map(|spent| *spent);
        if leaves {
            live.slots.leave();
        }
        let Some(journal) = &self.journal else {
            let applied = live.session.apply_change(&change, spent.as_ref());
            return applied.map_err(Broken::unsound);
        };
        let entry = Entry { at: UtcMillis::now(), spent, change };
        journal.record(&mut live.session, entry, self.wiring())
    }

    /// The parent was notified that the turn is over.
    pub(super) fn notified(&self) {
        self.live().session.notified = true;
    }

    fn summary_of(&self, session: &Session<usize>) -> crate::store::SessionSummary {
        session.summary(&self.wiring().nodes[session.cursor.step].name)
    }

    /// What a store keeps beside the log.
    pub(crate) fn summary(&self) -> crate::store::SessionSummary {
        self.session(|session| self.summary_of(session))
    }

    /// Whether a snapshot is due.
    pub(crate) fn is_snapshot_due(&self) -> bool {
        let Some(journal) = &self.journal else { return false };
        // The parts of a session that may be large.
        let size =
            |session: &Session<_>| json_size(&session.items) + json_size(&session.interrupts);
        journal.is_snapshot_due(|| self.session(size))
    }

    /// Buffers a snapshot. Says whether there is something to append.
    ///
    /// # Errors
    /// Why nothing more can be written.
    pub(crate) fn snapshot(&self, state: Value, schema: &Schema) -> Result<bool, Broken> {
        let Some(journal) = &self.journal else { return Ok(false) };
        // No effect is recorded between the look at the session and the snapshot.
        let live = self.live();
        journal.snapshot(live.session.named(self.wiring()), state, schema)
    }

    /// Appends what was recorded, when `when` says. Without a journal there is nothing to do.
    pub(crate) async fn commit(&self, when: When) -> Result<(), Broken> {
        match &self.journal {
            Some(journal) => journal.commit(when).await,
            None => Ok(()),
        }
    }

    pub(super) async fn record_now(&self, change: Change<usize>) -> Result<(), StepError> {
        let recorded = self.record(change);
        recorded.map_err(|broken| broken.to_error())?;
        self.commit(When::Now).await.map_err(|broken| broken.to_error())
    }

    /// Opens the slot of an attempt.
    pub(crate) fn enter(&self, place: Place) {
        self.live().slots.enter(place);
    }

    /// Looks at the session, and opens the slot of the attempt that comes next there.
    pub(super) fn enter_where<T>(&self, enter: impl FnOnce(&Session<usize>, &mut Slots) -> T) -> T {
        let Live { session, slots, .. } = &mut *self.live();
        enter(session, slots)
    }

    /// Sets when an attempt in flight is given up.
    pub(super) fn set_due(&self, place: Place, due: Instant) {
        self.live().slots.set_due(place, due);
    }

    /// Whether an attempt has asked something that has no answer. `waker` polls it again once it
    /// does, or sleeps.
    pub(super) fn has_asked(&self, place: Place, waker: Option<&Waker>) -> bool {
        let slots = &mut self.live().slots;
        if let Some(waker) = waker {
            slots.wait(place, waker);
        }
        slots.has_asked(place)
    }

    /// Whether an attempt waits for a timer, and no effect of it is running.
    pub(super) fn sleeps(&self, place: Place) -> bool {
        self.live().slots.sleeps(place)
    }

    /// Waits for the effects of an attempt: they are never dropped half-way.
    pub(crate) async fn effects_of(&self, place: Place) {
        let running = || self.live().slots.has_effects_of(place);
        // Most attempts have none, and keep no room for waiting.
        if running() {
            Box::pin(self.until(|| (!running()).then_some(()))).await;
        }
    }

    /// Waits until `over` says something, asking again whenever an effect ends.
    async fn until<T>(&self, over: impl Fn() -> Option<T>) -> T {
        loop {
            let ended = self.effect_ended.notified();
            if let Some(said) = over() {
                return said;
            }
            ended.await;
        }
    }

    /// Closes the slot of an attempt once its effects are over. Returns what it has begun and waits
    /// for, if anything.
    pub(super) async fn close(&self, place: Place) -> Option<Box<Work>> {
        match self.try_close(place) {
            Ok(work) => work,
            Err(StaysOpen) => Box::pin(self.until(|| self.try_close(place).ok())).await,
        }
    }

    /// The same if no effect is running.
    pub(super) fn try_close(&self, place: Place) -> Result<Option<Box<Work>>, StaysOpen> {
        self.live().slots.close(place)
    }

    /// How often the step at work was tried, the attempt in flight included.
    pub(crate) fn attempts_begun(&self) -> u32 {
        let live = self.live();
        let known = live.session.cursor.attempt;
        live.slots.begun_at(live.session.cursor.position).map_or(known, |begun| begun.max(known))
    }

    /// Ends what the attempts in flight have spawned and called.
    pub(crate) fn abort_tasks(&self) {
        self.live().slots.abort_tasks();
        self.cancel_children(None);
    }

    /// Cancels the children of all attempts in flight, or of one.
    pub(super) fn cancel_children(&self, place: Option<Place>) {
        let children = self.live().slots.children(place);
        children.iter().for_each(StopSignal::cancel);
    }

    pub(crate) fn has_effects(&self) -> bool {
        self.live().slots.has_effects()
    }

    /// Waits for effects in flight: they are never dropped half-way.
    pub(crate) async fn effects_over(&self) {
        self.until(|| (!self.has_effects()).then_some(())).await;
    }

    pub(super) fn effect_is_over(&self, place: Place, scope: EffectScope, key: &str) {
        let waker = {
            let slots = &mut self.live().slots;
            slots.end_effect(place, scope, key);
            // Its step may have nothing else to do.
            if slots.sleeps(place) { slots.waker(place) } else { None }
        };
        waker.into_iter().for_each(Waker::wake);
        self.effect_ended.notify_waiters();
    }

    /// Whether the run still holds its session.
    pub(crate) async fn holds(&self) -> bool {
        match &self.journal {
            Some(journal) => journal.holds().await,
            None => true,
        }
    }

    /// Whether the lease is known to be lost.
    pub(super) fn is_lost(&self) -> bool {
        self.journal.as_ref().is_some_and(Journal::is_lost)
    }
}

impl Wake for RunCore {
    fn wake_attempts(&self) {
        let wakers = self.live().slots.wakers();
        wakers.into_iter().for_each(Waker::wake);
    }
}
