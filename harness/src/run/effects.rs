//! What the run does for its steps: the executor's side of the seam.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures_util::future::{BoxFuture, FutureExt, ready};
use serde_json::Value;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::clock::UtcMillis;
use crate::graph::Graph;
use crate::id::Seq;
use crate::journal::{Broken, Journal, When};
use crate::llm::{CallId, Spend};
use crate::log::{EffectDone, Entry, EntryKind, Intent};
use crate::observe::{Event, EventKind, Fanout};
use crate::session::Memory;
use crate::step::{
    AskReply, Asked, EffectScope, Effects, Failure, Guard, Ids, Interrupt, OnceReply, Payload,
    Place, StepError,
};

use super::brakes::Brakes;
use super::desk::{Desk, Workplace};
use super::purse::Purse;

/// What all steps of one run share with its driver.
pub(crate) struct RunCore {
    pub(crate) ids: Ids,
    pub(crate) graph: Graph,
    pub(crate) fanout: Fanout,
    pub(crate) brakes: Brakes,
    /// Writes the session's log, where it has one.
    pub(crate) journal: Option<Box<Journal>>,
    /// The attempt at work, as one number.
    current: AtomicU64,
    /// The last attempt that asked something nobody has answered.
    asked: AtomicU64,
    /// Set by whoever uses the desk, until the position is left: steps that do not use it cost no
    /// lock, and are asked this one question.
    stirred: AtomicBool,
    /// What most runs never use is made when it is, so that every live run is small.
    workplace: OnceLock<Box<Workplace>>,
    purse: Purse,
    failure: Mutex<Option<Arc<Failure>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An attempt as one number: positions count far from 2^44, attempts at one of them from 2^20. Of
/// those that did not, only a task that outlived its step by a million attempts would be mistaken.
fn number(place: Place) -> u64 {
    place.position.0 << 20 | u64::from(place.attempt() & 0xF_FFFF)
}

impl RunCore {
    pub(crate) fn new(
        ids: Ids,
        graph: Graph,
        fanout: Fanout,
        brakes: Brakes,
        journal: Option<Box<Journal>>,
    ) -> Self {
        Self {
            ids,
            graph,
            fanout,
            brakes,
            journal,
            current: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            stirred: AtomicBool::new(false),
            workplace: OnceLock::new(),
            purse: Purse::default(),
            failure: Mutex::default(),
        }
    }

    /// Takes over what the session remembers.
    pub(crate) fn remember(&self, memory: Option<Box<Memory>>) {
        let holds = memory.as_ref().is_some_and(|memory| memory.holds_position());
        self.stirred.store(holds, Ordering::Relaxed);
        match memory {
            Some(memory) => self.desk().memory = *memory,
            None => drop(self.take_memory()),
        }
    }

    /// What is to be remembered, if anything was laid on the desk.
    pub(crate) fn take_memory(&self) -> Option<Memory> {
        self.workplace.get().map(|at| std::mem::take(&mut at.desk().memory))
    }

    /// Says which attempt is at work from here on.
    #[inline]
    pub(crate) fn begin(&self, place: Place) {
        self.current.store(number(place), Ordering::Relaxed);
    }

    /// Ends an attempt that left the desk alone: whatever outlives it is stale.
    #[inline]
    pub(crate) fn conclude(&self) {
        self.current.store(0, Ordering::Relaxed);
    }

    /// Ends the attempt once its effects are over: its tasks are aborted, its questions handed
    /// over.
    pub(crate) async fn close(&self, place: Place) -> Vec<(String, Asked)> {
        if !self.is_stirred() {
            self.conclude();
            return Vec::new();
        }
        loop {
            if let Some(asked) = self.try_conclude(place) {
                return asked;
            }
            self.effects_done().await;
        }
    }

    /// Ends the attempt unless it has effects in flight. Effects begin under the same lock, so
    /// that none is left out of the record.
    pub(crate) fn try_conclude(&self, place: Place) -> Option<Vec<(String, Asked)>> {
        if self.workplace.get().is_none() && self.current.load(Ordering::Relaxed) == 0 {
            // Only an attempt at work lays something on the desk.
            return Some(Vec::new());
        }
        let at = self.workplace();
        let mut desk = at.desk();
        if at.has_effects() {
            return None;
        }
        self.conclude();
        Some(desk.clear(place))
    }

    pub(crate) fn abort_tasks(&self) {
        if let Some(at) = self.workplace.get() {
            at.desk().abort_tasks();
        }
    }

    /// Whether the desk was used at this position.
    #[inline]
    pub(crate) fn is_stirred(&self) -> bool {
        self.stirred.load(Ordering::Relaxed)
    }

    /// What belongs to a position ends with it.
    #[inline]
    pub(crate) fn leave(&self) {
        if self.is_stirred() {
            self.forget();
        }
    }

    #[cold]
    fn forget(&self) {
        let mut desk = self.desk();
        self.stirred.store(false, Ordering::Relaxed);
        desk.memory.leave();
    }

    /// Whether this attempt has asked something that nobody has answered.
    #[inline]
    pub(crate) fn has_asked(&self, place: Place) -> bool {
        self.asked.load(Ordering::Relaxed) == number(place)
    }

    pub(crate) fn desk(&self) -> MutexGuard<'_, Desk> {
        self.workplace().desk()
    }

    fn workplace(&self) -> &Workplace {
        self.workplace.get_or_init(Box::default)
    }

    /// What the turn has spent, if that is anything.
    pub(crate) fn spent_so_far(&self) -> Option<Box<Spend>> {
        self.purse.spent().map(Box::new)
    }

    /// Takes over what the turn has spent before this run.
    pub(crate) fn set_spent(&self, spent: Option<Box<Spend>>) {
        self.purse.begin(spent.as_deref());
    }

    pub(crate) fn set_failure(&self, failure: Option<Arc<Failure>>) {
        *lock(&self.failure) = failure;
    }

    /// Whether what an attempt returned does not settle it: it has used the desk, and may have
    /// asked or have effects in flight; or its run is cancelled.
    #[inline]
    pub(crate) fn is_unsettled(&self) -> bool {
        self.is_stirred() || self.brakes.is_cancelled()
    }

    /// Whether the run still holds its session.
    pub(crate) async fn holds(&self) -> bool {
        match &self.journal {
            Some(journal) => journal.holds().await,
            None => true,
        }
    }

    /// Waits for effects in flight: they are never dropped half-way.
    pub(crate) async fn effects_done(&self) {
        if let Some(at) = self.workplace.get() {
            at.effects_done().await;
        }
    }

    /// An entry made now, which takes along what was spent since the one before.
    pub(crate) fn entry(&self, kind: EntryKind) -> Entry {
        let spent = self.purse.unrecorded();
        Entry { at: UtcMillis::now(), spent, kind }
    }

    /// Writes what an effect says, durably.
    async fn write(&self, kind: EntryKind) -> Result<(), StepError> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let entry = self.entry(kind);
        let written = journal.write(vec![entry], When::Now, Vec::new()).await;
        written.map(|_| ()).map_err(|broken| broken.to_error())
    }

    #[inline]
    pub(crate) fn publish(&self, place: Option<Place>, kind: impl FnOnce() -> EventKind) {
        if !self.fanout.is_silent() {
            self.tell(place, None, kind());
        }
    }

    /// Tells of what is in the log now, as this entry.
    pub(crate) fn publish_stored(&self, place: Place, seq: Seq, kind: EventKind) {
        self.tell(Some(place), Some(seq), kind);
    }

    #[cold]
    fn tell(&self, place: Option<Place>, seq: Option<Seq>, kind: EventKind) {
        let at = place.unwrap_or_default();
        let step = place.map(|at| Arc::clone(&self.graph.wiring.nodes[at.step()].name));
        self.fanout.publish(|number| Event {
            number,
            at: UtcMillis::now(),
            agent: self.ids.agent.clone(),
            session: self.ids.session.clone(),
            run: self.ids.run.clone(),
            parent: self.ids.parent.clone(),
            step,
            position: at.position,
            attempt: at.attempt(),
            seq,
            kind,
        });
    }

    /// The desk, if the attempt that asks is the one at work.
    fn desk_of(&self, place: Place) -> Option<MutexGuard<'_, Desk>> {
        let desk = self.desk();
        self.stirred.store(true, Ordering::Relaxed);
        (self.current.load(Ordering::Relaxed) == number(place)).then_some(desk)
    }

    /// Whether an effect may still be recorded: not if it is of a task that outlived its step, and
    /// the session stands at another position by now.
    fn may_record(&self, place: Place, scope: EffectScope) -> bool {
        scope == EffectScope::Session
            || self.current.load(Ordering::Relaxed) >> 20 == place.position.0
    }

    fn remember_effect(&self, place: Place, scope: EffectScope, key: &str, value: Value) {
        let mut desk = self.desk();
        self.stirred.store(true, Ordering::Relaxed);
        if self.may_record(place, scope) {
            let (results, intents) = desk.memory.effects_of(scope);
            intents.remove(key);
            results.insert(key.to_owned(), value);
        }
    }

    fn effect_is_over(&self) {
        self.workplace().effect_is_over();
    }
}

impl Effects for RunCore {
    fn ids(&self) -> &Ids {
        &self.ids
    }

    fn step_name(&self, step: usize) -> &str {
        &self.graph.wiring.nodes[step].name
    }

    fn emit(&self, place: Place, payload: Arc<dyn Payload>) {
        self.publish(Some(place), || EventKind::Custom(payload));
    }

    fn charge(&self, place: Place, spend: &Spend) {
        self.purse.charge(spend, self.journal.is_some());
        self.publish(Some(place), || EventKind::Charged { spend: *spend });
    }

    fn spent(&self) -> Spend {
        self.purse.spent().unwrap_or_default()
    }

    fn begin_call(&self, place: Place, model: &str) -> CallId {
        let op = self.op_id(place);
        let ordinal = {
            let mut desk = self.desk();
            self.stirred.store(true, Ordering::Relaxed);
            desk.memory.calls += 1;
            desk.memory.calls
        };
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
        let Some(mut desk) = self.desk_of(place) else {
            return AskReply::Stale;
        };
        if !desk.use_ask_key(key) {
            return AskReply::KeyReused;
        }
        // An answer never moves over to another question under the same key.
        let same = |of: &Interrupt| {
            of.name == asked.name
                && of.question == asked.question
                && of.answer_schema == asked.answer_schema
        };
        if let Some((of, answer)) = desk.memory.answers.get(key)
            && same(of)
        {
            return AskReply::Answered(answer.clone());
        }
        if desk.memory.expired.get(key).is_some_and(same) {
            return AskReply::Expired;
        }
        desk.asked.push((place, key.to_owned(), asked));
        self.asked.store(number(place), Ordering::Relaxed);
        drop(desk);
        self.brakes.wake();
        AskReply::Waits
    }

    fn begin_once(&self, place: Place, scope: EffectScope, key: &str, guard: Guard) -> OnceReply {
        let Some(mut desk) = self.desk_of(place) else {
            return OnceReply::Stale;
        };
        let scoped = match scope {
            EffectScope::Position => format!("position/{key}"),
            EffectScope::Session => format!("session/{key}"),
        };
        if !desk.use_effect_key(&scoped) {
            return OnceReply::KeyReused;
        }
        let (results, intents) = desk.memory.effects_of(scope);
        if let Some(value) = results.get(key) {
            return OnceReply::Done(value.clone());
        }
        if guard == Guard::AtMostOnce && intents.contains(key) {
            return OnceReply::InDoubt;
        }
        if self.journal.as_ref().is_some_and(|journal| journal.is_over()) {
            return OnceReply::Refused(Broken::LeaseLost.to_error());
        }
        self.workplace().effect_begins();
        OnceReply::Run
    }

    fn retry_once(&self, place: Place, _: EffectScope, _: &str) -> OnceReply {
        let Some(_desk) = self.desk_of(place) else {
            return OnceReply::Stale;
        };
        if self.journal.as_ref().is_some_and(|journal| journal.is_over()) {
            return OnceReply::Refused(Broken::LeaseLost.to_error());
        }
        self.workplace().effect_begins();
        OnceReply::Run
    }

    fn intend<'a>(
        &'a self,
        place: Place,
        scope: EffectScope,
        key: &'a str,
        guard: Guard,
    ) -> BoxFuture<'a, Result<(), StepError>> {
        let Some(journal) = &self.journal else {
            if guard == Guard::AtMostOnce && self.may_record(place, scope) {
                self.desk().memory.effects_of(scope).1.insert(key.to_owned());
            }
            return ready(Ok(())).boxed();
        };
        if !self.may_record(place, scope) {
            let why = format!("the effect `{key}` was begun by a task whose step is over");
            return ready(Err(StepError::fatal(why))).boxed();
        }
        if guard == Guard::AtMostOnce {
            self.desk().memory.effects_of(scope).1.insert(key.to_owned());
        }
        async move {
            match guard {
                Guard::AtMostOnce => {
                    self.write(EntryKind::Intent(Intent { key: key.to_owned(), scope })).await?;
                }
                // What led to the effect must not be lost while the effect is not.
                Guard::AtLeastOnce => journal.flush().await.map_err(|broken| broken.to_error())?,
            }
            // Making that durable takes time, in which the process may have stood still: whoever
            // has taken the session since does the effect too, or has been told that it is in
            // doubt.
            match journal.holds().await {
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
        let may = self.may_record(place, scope);
        if self.journal.is_none() {
            self.remember_effect(place, scope, key, value);
            self.effect_is_over();
            return ready(Ok(())).boxed();
        }
        async move {
            let mut written = Ok(());
            if may {
                let done = EffectDone { key: key.to_owned(), scope, value: value.clone() };
                written = self.write(EntryKind::Effect(done)).await;
            }
            if may && written.is_ok() {
                self.remember_effect(place, scope, key, value);
            }
            // Also if it could not be recorded: the run waits for it before it settles.
            self.effect_is_over();
            written
        }
        .boxed()
    }

    fn drop_once(&self, _: Place, _: EffectScope, _: &str) {
        self.effect_is_over();
    }

    fn adopt(&self, place: Place, task: AbortHandle) {
        match self.desk_of(place) {
            Some(mut desk) => desk.tasks.push(task),
            None => task.abort(),
        }
    }

    fn stopping(&self) -> &CancellationToken {
        self.brakes.stopping()
    }

    fn failure(&self) -> Option<Arc<Failure>> {
        lock(&self.failure).clone()
    }
}
