//! What a run does for its steps: the executor's side of the seam.

use std::any::Any;
use std::sync::Arc;
use std::task::Waker;

use futures_util::future::{BoxFuture, FutureExt, ready};
use serde_json::Value;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use crate::clock::UtcMillis;
use crate::id::SessionId;
use crate::journal::Broken;
use crate::llm::{CallId, Delta, EffectClass, Reply, Request, Spend, ToolCall};
use crate::observe::EventKind;
use crate::observe::trace::Content;
use crate::session::{AskedInterrupt, Change, EffectDone, EffectRecord, Intent, Resolution, Timer};
use crate::step::{
    Answer, AskReply, Asked, CallEnd, EffectScope, Effects, Failure, Guard, Ids, OnceReply,
    Payload, Place, Scope, SleepReply, StepError, ToolEnd, Wake, current,
};

use super::core::{Live, RunCore};
use super::parent::{Parent, ParentRun};
use super::spans::Spans;
use super::stop::StopSignal;
use super::transition::{budget_at, overspent};

impl Effects for RunCore {
    fn ids(&self) -> &Ids {
        &self.ids
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }

    #[cfg(feature = "code")]
    fn span(&self, place: Place) -> Span {
        self.spans.as_ref().map_or_else(Span::none, |spans| spans.step(place))
    }

    fn incarnation(&self) -> String {
        self.live().session.salt.incarnation()
    }

    fn step_name(&self, step: usize) -> &str {
        &self.wiring().nodes[step].name
    }

    fn emit(&self, place: Place, payload: Arc<dyn Payload>) {
        self.publish(Some(place), || EventKind::Custom(payload));
    }

    fn charge(&self, place: Place, spend: &Spend) {
        self.spend(spend);
        self.publish(Some(place), || EventKind::Charged { spend: *spend });
    }

    fn spent(&self) -> Spend {
        let live = self.live();
        let mut spent = live.session.spent;
        spent += live.unrecorded.as_deref().copied().unwrap_or_default();
        live.children.values().for_each(|child| spent += *child);
        spent
    }

    fn begin_call(&self, place: Place, id: Option<CallId>, model: &str) -> (CallId, Span) {
        let call = id.unwrap_or_else(|| self.call_id(place));
        self.publish(Some(place), || EventKind::CallStarted {
            call: call.clone(),
            model: model.to_owned(),
        });
        let span = self.spans.as_ref().map_or_else(Span::none, |spans| spans.call(&call));
        (call, span)
    }

    fn request(&self, span: &Span, request: &Request<'_>) {
        Spans::content(span, Content::Request(request));
    }

    fn end_call(&self, place: Place, call: CallId, ended: CallEnd<'_>) {
        if let (Some(spans), Ok(reply)) = (&self.spans, ended.reply) {
            Spans::content(&spans.call(&call), Content::Reply(reply));
        }
        self.publish(Some(place), || super::reports::call_ended(call, ended));
    }

    fn recorded_call(&self, place: Place, id: Option<CallId>, model: &str, reply: &Reply) {
        if self.is_silent() {
            return;
        }
        let call = id.unwrap_or_else(|| self.call_id(place));
        self.publish(Some(place), || super::reports::call_recorded(call, model, reply));
    }

    fn begin_tool(&self, place: Place, call: &ToolCall, class: EffectClass) -> Span {
        self.publish(Some(place), || EventKind::ToolStarted {
            call: call.id.clone(),
            tool: call.name.clone(),
            class,
        });
        let span = self.spans.as_ref().map_or_else(Span::none, |spans| spans.tool(place, &call.id));
        Spans::content(&span, Content::Call(call));
        span
    }

    fn end_tool(&self, place: Place, call: &ToolCall, ended: ToolEnd<'_>) {
        if let Some(spans) = &self.spans {
            Spans::content(&spans.tool(place, &call.id), Content::Outcome(ended.outcome));
        }
        self.publish(Some(place), || super::reports::tool_ended(call, ended));
    }

    fn wants_tokens(&self) -> bool {
        self.fanout.wants_tokens()
    }

    fn token(&self, place: Place, call: &CallId, delta: &Delta) {
        let kind = EventKind::Token { call: call.clone(), delta: delta.clone() };
        self.publish_token(place, kind);
    }

    fn deadline(&self, place: Place) -> Option<Instant> {
        self.live().slots.due(place)
    }

    fn ask(&self, place: Place, key: &str, asked: Asked) -> AskReply {
        let mut live = self.live();
        let Live { session, slots, .. } = &mut *live;
        let Some(slot) = slots.of(place) else { return AskReply::Stale };
        if !slot.use_ask_key(key) {
            return AskReply::KeyReused;
        }
        let before = session.asked(place.item, Some(key));
        let same = before.is_some_and(|before| asked.is(&before.interrupt));
        if let Some(AskedInterrupt { interrupt, resolution: Some(Resolution::Answered { .. }) }) =
            before
            && !same
        {
            // An answer never moves over to another question under the same key. Asked
            // again, a question whose words change with each attempt would never come to its answer.
            return AskReply::Changed(interrupt.question.clone());
        }
        let before = before.filter(|_| same);
        if let Some(AskedInterrupt { interrupt, resolution: Some(resolution) }) = before {
            let Resolution::Answered { value, by, at, .. } = resolution else {
                return AskReply::Expired;
            };
            return AskReply::Answered(Answer {
                id: interrupt.id.clone(),
                name: None,
                value: Ok(value.clone()),
                by: by.clone(),
                at: *at,
            });
        }
        slot.asked.push((key.to_owned(), asked));
        let waker = slots.waker(place);
        drop(live);
        if let Some(waker) = waker {
            waker.wake();
        }
        AskReply::Waits
    }

    fn sleep(&self, place: Place, key: &str, wake: Wake) -> SleepReply {
        let mut live = self.live();
        let Live { session, slots, .. } = &mut *live;
        let Some(slot) = slots.of(place) else { return SleepReply::Stale };
        if !slot.use_effect_key(format!("timer/{key}")) {
            return SleepReply::KeyReused;
        }
        let now = UtcMillis::now();
        let started = session.timers_of(place.item).and_then(|timers| timers.due(Some(key)));
        let due = started.unwrap_or_else(|| match wake {
            Wake::At(time) => time,
            Wake::After(time) => now.after(time),
        });
        if due <= now {
            return SleepReply::Due;
        }
        slot.timers.push(Timer::new(Some(key.to_owned()), due));
        let waker = slots.waker(place);
        drop(live);
        waker.into_iter().for_each(Waker::wake);
        SleepReply::Waits
    }

    fn recorded(&self, place: Place, scope: EffectScope, key: &str) -> Option<Value> {
        match self.live().session.effect(place.item, scope, key) {
            Some(EffectRecord::Done(value)) => Some(value.clone()),
            Some(_) | None => None,
        }
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
            Some(open) if guard == Guard::AtMostOnce => {
                return OnceReply::InDoubt(open.in_doubt().unwrap_or_default());
            }
            Some(_) | None => {}
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

    fn take_back<'a>(
        &'a self,
        place: Place,
        scope: EffectScope,
        key: &'a str,
    ) -> BoxFuture<'a, Result<(), StepError>> {
        let intent = Intent { key: key.to_owned(), item: place.item, scope };
        async move { self.record_now(Change::NotDone(intent)).await }.boxed()
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

    #[cfg(feature = "code")]
    fn giving_up(&self, place: Place) -> CancellationToken {
        // What ends the children of an attempt ends this.
        let signal = StopSignal::default();
        match self.live().slots.of(place) {
            Some(slot) => slot.adopt_child(signal.clone()),
            None => signal.cancel(),
        }
        signal.stopping().clone()
    }

    fn failure(&self) -> Option<Arc<Failure>> {
        self.live().session.cursor.failure.clone()
    }
}

impl ParentRun for RunCore {
    fn spend(&self, child: Option<&SessionId>, spend: &Spend) {
        match child {
            Some(child) => self.child_spends(child, spend),
            None => RunCore::spend(self, spend),
        }
    }

    fn report(&self, place: Place, kind: EventKind) {
        if self.session(|session| session.settled.is_none()) {
            self.publish(Some(place), || kind);
        }
    }
}

/// The step that polls the caller, as the parent of a run that it starts.
pub(super) fn current_parent() -> Option<Parent> {
    let scope = current()?;
    let core = Arc::clone(&scope.effects).into_any().downcast::<RunCore>().ok()?;
    Some(core.as_parent(&scope))
}

impl RunCore {
    /// A new id of a model call: the op id, and the count of calls at the position.
    fn call_id(&self, place: Place) -> CallId {
        let op = self.op_id(place);
        let ordinal = self.live().slots.next_call(place.item);
        CallId::new(format!("{op}#{ordinal}"))
    }

    /// As the parent of a run that a step starts.
    pub(super) fn as_parent(self: &Arc<Self>, scope: &Scope) -> Parent {
        let parent: Arc<dyn ParentRun> = Arc::clone(self) as _;
        let span = self.spans.as_ref().map_or_else(Span::current, |it| it.step(scope.place));
        Parent::new(scope, Arc::downgrade(&parent), self.depth() + 1, span)
    }

    /// How many runs or sessions are above this one.
    fn depth(&self) -> u32 {
        let stored = self.session(|session| session.parent.as_ref().map(|parent| parent.depth));
        let here = self.parent.as_ref().map(Parent::depth);
        stored.into_iter().chain(here).max().unwrap_or(0)
    }

    /// A child session spends. If that is more than the turn may spend, all children stop.
    fn child_spends(&self, child: &SessionId, spend: &Spend) {
        *self.live().children.entry(child.clone()).or_default() += *spend;
        if let Some(parent) = &self.parent {
            parent.charge(spend);
        }
        let over = self.budget.get().is_some_and(|budget| {
            let spent = self.spent();
            self.session(|session| overspent(budget_at(budget, &session.cursor), &spent)).is_some()
        });
        if over {
            let children = self.live().slots.children(None);
            children.iter().for_each(StopSignal::stop);
        }
    }
}
