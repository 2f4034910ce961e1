//! What all steps of one run share with its driver: the session, the journal, the observers.
//!
//! This is the executor's side of the seam that steps see as [`Effects`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use futures_util::future::{BoxFuture, FutureExt, ready};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::clock::UtcMillis;
use crate::graph::{Graph, Wiring};
use crate::journal::{Broken, Journal, When, json_size};
use crate::llm::{CallId, Spend};
use crate::observe::{EventKind, Fanout};
use crate::session::{
    AskedInterrupt, Change, EffectDone, EffectRecord, Entry, Intent, Resolution, Session,
};
use crate::state::Schema;
use crate::step::{
    Answer, AskReply, Asked, EffectScope, Effects, Failure, Guard, Ids, OnceReply, Payload, Place,
    StepError,
};

use super::slots::Slots;
use super::stop::StopSignal;

/// What all steps of one run share with its driver.
pub(crate) struct RunCore {
    pub(crate) ids: Ids,
    pub(crate) graph: Graph,
    pub(crate) fanout: Fanout,
    pub(crate) stop: StopSignal,
    /// Writes the session's log, where it has one.
    pub(crate) journal: Option<Journal>,
    live: Mutex<Live>,
    effect_ended: Notify,
}

/// The session at work, and what the attempts in flight do.
struct Live {
    session: Session<usize>,
    /// What was spent since the last entry.
    unrecorded: Option<Spend>,
    slots: Slots,
}

impl RunCore {
    pub(crate) fn new(
        ids: Ids,
        graph: Graph,
        fanout: Fanout,
        stop: StopSignal,
        journal: Option<Journal>,
        session: Session<usize>,
    ) -> Self {
        let live = Live { session, unrecorded: None, slots: Slots::default() };
        let effect_ended = Notify::new();
        Self { ids, graph, fanout, stop, journal, live: Mutex::new(live), effect_ended }
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
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
        events: Vec<EventKind>,
    ) -> Result<(), Broken> {
        // Effects of other items do not come between the change and its events.
        let mut live = self.live();
        self.record_in(&mut live, change)?;
        if self.journal.is_none() {
            drop(live);
        }
        events.into_iter().for_each(|kind| self.publish_recorded(place, kind));
        Ok(())
    }

    fn record_in(&self, live: &mut Live, change: Change<usize>) -> Result<(), Broken> {
        let leaves = matches!(
            change,
            Change::Committed(_)
                | Change::Diverted(_)
                | Change::Finishing(_)
                | Change::RunStarted(_)
        );
        let spent = live.unrecorded.take();
        if leaves {
            live.slots.leave();
        }
        let Some(journal) = &self.journal else {
            let entry = Entry { at: UtcMillis::default(), spent, change };
            let applied = live.session.apply(&entry);
            return applied.map_err(|error| Broken::Unsound(error.to_string()));
        };
        let entry = Entry { at: UtcMillis::now(), spent, change };
        journal.record(&mut live.session, entry, self.wiring())
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
        let live = self.live();
        let Session { items, interrupts, .. } = &live.session;
        // The parts of a session that may be large.
        journal.is_snapshot_due(|| json_size(items) + json_size(interrupts))
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

    async fn record_now(&self, change: Change<usize>) -> Result<(), StepError> {
        let recorded = self.record(change);
        recorded.map_err(|broken| broken.to_error())?;
        self.commit(When::Now).await.map_err(|broken| broken.to_error())
    }

    /// Opens the slot of an attempt.
    pub(crate) fn enter(&self, place: Place) {
        self.live().slots.enter(place);
    }

    /// Whether an attempt has asked something that has no answer. `waker` polls it again once it
    /// does.
    pub(crate) fn has_asked(&self, place: Place, waker: Option<&Waker>) -> bool {
        let mut live = self.live();
        let Some(slot) = live.slots.of(place) else { return false };
        if let Some(waker) = waker {
            slot.waker = Some(waker.clone());
        }
        !slot.asked.is_empty()
    }

    /// Waits for the effects of an attempt: they are never dropped half-way.
    pub(crate) async fn effects_of(&self, place: Place) {
        let running = || self.live().slots.of(place).is_some_and(|slot| slot.effects > 0);
        if !running() {
            return;
        }
        loop {
            let ended = self.effect_ended.notified();
            if !running() {
                return;
            }
            ended.await;
        }
    }

    /// Closes the slot of an attempt once its effects are over. Returns the questions that have no
    /// answer.
    pub(crate) async fn close(&self, place: Place) -> Vec<(String, Asked)> {
        if let Some(asked) = self.try_close(place) {
            return asked;
        }
        loop {
            let ended = self.effect_ended.notified();
            if let Some(asked) = self.try_close(place) {
                return asked;
            }
            ended.await;
        }
    }

    /// The same if no effect is running.
    pub(crate) fn try_close(&self, place: Place) -> Option<Vec<(String, Asked)>> {
        self.live().slots.close(place)
    }

    /// How often the step at work was tried, the attempt in flight included.
    pub(crate) fn attempts_begun(&self) -> u32 {
        let live = self.live();
        let known = live.session.cursor.attempt;
        live.slots.begun_at(live.session.cursor.position).map_or(known, |begun| begun.max(known))
    }

    pub(crate) fn abort_tasks(&self) {
        self.live().slots.abort_tasks();
    }

    pub(crate) fn has_effects(&self) -> bool {
        self.live().slots.has_effects()
    }

    /// Waits for effects in flight: they are never dropped half-way.
    pub(crate) async fn effects_over(&self) {
        loop {
            let ended = self.effect_ended.notified();
            if !self.has_effects() {
                return;
            }
            ended.await;
        }
    }

    fn effect_is_over(&self, place: Place, scope: EffectScope, key: &str) {
        self.live().slots.end_effect(place, scope, key);
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
    fn is_lost(&self) -> bool {
        self.journal.as_ref().is_some_and(Journal::is_lost)
    }
}

impl Effects for RunCore {
    fn ids(&self) -> &Ids {
        &self.ids
    }

    fn step_name(&self, step: usize) -> &str {
        &self.wiring().nodes[step].name
    }

    fn emit(&self, place: Place, payload: Arc<dyn Payload>) {
        self.publish(Some(place), || EventKind::Custom(payload));
    }

    fn charge(&self, place: Place, spend: &Spend) {
        *self.live().unrecorded.get_or_insert_default() += *spend;
        self.publish(Some(place), || EventKind::Charged { spend: *spend });
    }

    fn spent(&self) -> Spend {
        let live = self.live();
        let mut spent = live.session.spent;
        spent += live.unrecorded.unwrap_or_default();
        spent
    }

    fn begin_call(&self, place: Place, model: &str) -> CallId {
        let op = self.op_id(place);
        let ordinal = self.live().slots.next_call(place.item);
        let call = CallId::new(format!("{op}#{ordinal}"));
        self.publish(Some(place), || EventKind::CallStarted {
            call: call.clone(),
            model: model.to_owned(),
        });
        call
    }

    fn end_call(&self, place: Place, call: CallId, model: &str, error: Option<&str>) {
        self.publish(Some(place), || EventKind::CallEnded {
            call,
            model: model.to_owned(),
            error: error.map(str::to_owned),
        });
    }

    fn ask(&self, place: Place, key: &str, asked: Asked) -> AskReply {
        let mut live = self.live();
        let Live { session, slots, .. } = &mut *live;
        let Some(slot) = slots.of(place) else { return AskReply::Stale };
        if !slot.use_ask_key(key) {
            return AskReply::KeyReused;
        }
        // An answer never moves over to another question under the same key.
        let before = session.asked(place.item, Some(key)).filter(|before| {
            let of = &before.interrupt;
            of.name == asked.name
                && of.question == asked.question
                && of.answer_schema == asked.answer_schema
        });
        match before {
            Some(AskedInterrupt { interrupt, resolution: Some(resolution) }) => match resolution {
                Resolution::Answered { value, by, at, .. } => {
                    return AskReply::Answered(Answer {
                        id: interrupt.id.clone(),
                        name: None,
                        value: Ok(value.clone()),
                        by: by.clone(),
                        at: *at,
                    });
                }
                Resolution::Expired | Resolution::Withdrawn => return AskReply::Expired,
            },
            Some(AskedInterrupt { resolution: None, .. }) | None => {}
        }
        slot.asked.push((key.to_owned(), asked));
        let waker = slot.waker.take();
        drop(live);
        if let Some(waker) = waker {
            waker.wake();
        }
        AskReply::Waits
    }

    fn begin_once(&self, place: Place, scope: EffectScope, key: &str, guard: Guard) -> OnceReply {
        let mut live = self.live();
        let Live { session, slots, .. } = &mut *live;
        if slots.is_at_work(scope, key) {
            return OnceReply::AtWork;
        }
        let Some(slot) = slots.of(place) else { return OnceReply::Stale };
        let scoped = match scope {
            EffectScope::Position => format!("position/{key}"),
            EffectScope::Session => format!("session/{key}"),
        };
        if !slot.use_effect_key(scoped) {
            return OnceReply::KeyReused;
        }
        match session.effect(place.item, scope, key) {
            Some(EffectRecord::Done(value)) => return OnceReply::Done(value.clone()),
            Some(EffectRecord::Intent) if guard == Guard::AtMostOnce => return OnceReply::InDoubt,
            Some(EffectRecord::Intent) | None => {}
        }
        if self.is_lost() {
            return OnceReply::Refused(Broken::LeaseLost.to_error());
        }
        slots.begin_effect(place, scope, key);
        OnceReply::Run
    }

    fn retry_once(&self, place: Place, scope: EffectScope, key: &str) -> OnceReply {
        let mut live = self.live();
        let Live { session, slots, .. } = &mut *live;
        if slots.is_at_work(scope, key) {
            return OnceReply::AtWork;
        }
        if slots.of(place).is_none() {
            return OnceReply::Stale;
        }
        // Another item of the step may have settled the doubt.
        if let Some(EffectRecord::Done(value)) = session.effect(place.item, scope, key) {
            return OnceReply::Done(value.clone());
        }
        if self.is_lost() {
            return OnceReply::Refused(Broken::LeaseLost.to_error());
        }
        slots.begin_effect(place, scope, key);
        OnceReply::Run
    }

    fn effect_ended(&self) -> BoxFuture<'_, ()> {
        self.effect_ended.notified().boxed()
    }

    fn intend<'a>(
        &'a self,
        place: Place,
        scope: EffectScope,
        key: &'a str,
        guard: Guard,
    ) -> BoxFuture<'a, Result<(), StepError>> {
        if self.live().slots.of(place).is_none() {
            let why = format!("the effect `{key}` was begun by a task whose step is over");
            return ready(Err(StepError::fatal(why))).boxed();
        }
        async move {
            match (guard, &self.journal) {
                (Guard::AtMostOnce, _) => {
                    let key = key.to_owned();
                    self.record_now(Change::Intent(Intent { key, item: place.item, scope }))
                        .await?;
                }
                // What led to the effect must not be lost while the effect is not.
                (Guard::AtLeastOnce, Some(journal)) => {
                    journal.flush().await.map_err(|broken| broken.to_error())?;
                }
                (Guard::AtLeastOnce, None) => {}
            }
            // That takes time, in which the process may have stood still: a run that has claimed the
            // session since makes the effect too, or finds it in doubt.
            match self.holds().await {
                true => Ok(()),
                false => Err(Broken::LeaseLost.to_error()),
            }
        }
        .boxed()
    }

    fn end_once<'a>(
        &'a self,
        place: Place,
        scope: EffectScope,
        key: &'a str,
        value: Value,
    ) -> BoxFuture<'a, Result<(), StepError>> {
        async move {
            let done = EffectDone { key: key.to_owned(), item: place.item, scope, value };
            let recorded = self.record_now(Change::Effect(done)).await;
            // Also if it could not be recorded: the run waits for it before it settles.
            self.effect_is_over(place, scope, key);
            recorded
        }
        .boxed()
    }

    fn drop_once(&self, place: Place, scope: EffectScope, key: &str) {
        self.effect_is_over(place, scope, key);
    }

    fn adopt(&self, place: Place, task: AbortHandle) {
        match self.live().slots.of(place) {
            Some(slot) => slot.adopt(task),
            None => task.abort(),
        }
    }

    fn stopping(&self) -> &CancellationToken {
        self.stop.stopping()
    }

    fn failure(&self) -> Option<Arc<Failure>> {
        self.live().session.cursor.failure.clone()
    }
}
