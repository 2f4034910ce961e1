//! What a step under test sees in place of a run: scripted answers, and a record of what it does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use crate::clock::UtcMillis;
use crate::id::{InterruptId, Position};
use crate::llm::{CallId, Delta, EffectClass, Reply, Spend, ToolCall};
use crate::question::mismatch;
use crate::step::{
    Answer, AskReply, Asked, CallEnd, EffectScope, Effects, Failure, Guard, Ids, Interrupt,
    OnceReply, Payload, Place, SleepReply, StepError, ToolEnd, Wake,
};

use super::error::Kind;
use super::script::{Said, Who};

/// The executor of one attempt at one step, without a session.
pub(super) struct Bench {
    pub(super) ids: Ids,
    pub(super) step: String,
    pub(super) failure: Option<Arc<Failure>>,
    pub(super) stopping: CancellationToken,
    seen: Mutex<Seen>,
    effect_ended: Notify,
}

/// What the step has done.
#[derive(Default)]
pub(super) struct Seen {
    /// The answers that were not given yet, by the key of their question.
    pub(super) script: BTreeMap<String, Said>,
    pub(super) asked: Vec<Interrupt>,
    /// The keys of the questions that have no answer.
    pub(super) open: BTreeSet<String>,
    /// What is wrong with the first answer that does not fit.
    pub(super) misfit: Option<Kind>,
    pub(super) effects: Vec<(String, Value)>,
    pub(super) emitted: Vec<Arc<dyn Payload>>,
    pub(super) spent: Spend,
    effect_keys: BTreeSet<String>,
    running: usize,
    calls: u32,
    tasks: Vec<AbortHandle>,
    waker: Option<Waker>,
}

impl Bench {
    pub(super) fn new(ids: Ids, step: String, script: BTreeMap<String, Said>) -> Self {
        Self {
            ids,
            step,
            failure: None,
            stopping: CancellationToken::new(),
            seen: Mutex::new(Seen { script, ..Seen::default() }),
            effect_ended: Notify::new(),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the step has done. It is over: what it has spawned is aborted.
    pub(super) fn take(&self) -> Seen {
        let seen = std::mem::take(&mut *self.seen());
        seen.tasks.iter().for_each(AbortHandle::abort);
        seen
    }

    /// Whether the step has asked something that has no answer. `waker` polls it again once it does.
    pub(super) fn waits(&self, waker: &Waker) -> bool {
        let mut seen = self.seen();
        seen.waker = Some(waker.clone());
        !seen.open.is_empty()
    }

    /// Waits for effects in flight: they are never dropped half-way.
    pub(super) async fn effects_over(&self) {
        loop {
            let ended = self.effect_ended.notified();
            if self.seen().running == 0 {
                return;
            }
            ended.await;
        }
    }

    fn effect_is_over(&self) {
        let mut seen = self.seen();
        seen.running = seen.running.saturating_sub(1);
        drop(seen);
        self.effect_ended.notify_waiters();
    }
}

/// What is wrong with what a test says to a question.
fn misfit(key: &str, asked: &Asked, said: &Said) -> Option<Kind> {
    let to = Who::key(key).to_string();
    match said {
        Said::Answer(value) => mismatch(&asked.answer_schema, value).map(|why| Kind::Misfit {
            to,
            question: asked.name.to_owned(),
            why,
        }),
        Said::Nothing => asked.expires.is_none().then_some(Kind::NeverExpires { to }),
    }
}

impl Effects for Bench {
    fn wants_tokens(&self) -> bool {
        false
    }

    fn token(&self, _: Place, _: &CallId, _: &Delta) {}

    fn deadline(&self, _: Place) -> Option<tokio::time::Instant> {
        None
    }

    fn recorded(&self, _: Place, _: EffectScope, _: &str) -> Option<Value> {
        // A step under test is entered once.
        None
    }

    fn begin_tool(&self, _: Place, _: &ToolCall, _: EffectClass) -> Span {
        Span::none()
    }

    fn end_tool(&self, _: Place, _: &ToolCall, _: ToolEnd<'_>) {}

    fn into_any(self: Arc<Self>) -> Arc<dyn std::any::Any + Send + Sync> {
        self
    }

    fn ids(&self) -> &Ids {
        &self.ids
    }

    fn incarnation(&self) -> String {
        "test".to_owned()
    }

    fn step_name(&self, _: usize) -> &str {
        &self.step
    }

    fn emit(&self, _: Place, payload: Arc<dyn Payload>) {
        self.seen().emitted.push(payload);
    }

    fn charge(&self, _: Place, spend: &Spend) {
        self.seen().spent += *spend;
    }

    fn spent(&self) -> Spend {
        self.seen().spent
    }

    fn begin_call(&self, place: Place, id: Option<CallId>, _: &str) -> (CallId, Span) {
        let mut seen = self.seen();
        seen.calls += 1;
        let own = || CallId::new(format!("{}#{}", self.op_id(place), seen.calls));
        (id.unwrap_or_else(own), Span::none())
    }

    fn end_call(&self, _: Place, _: CallId, _: CallEnd<'_>) {}

    fn recorded_call(&self, _: Place, _: Option<CallId>, _: &str, _: &Reply) {}

    fn ask(&self, place: Place, key: &str, asked: Asked) -> AskReply {
        let mut seen = self.seen();
        if seen.asked.iter().any(|before| before.key.as_deref() == Some(key)) {
            return AskReply::KeyReused;
        }
        let now = UtcMillis::now();
        let id = InterruptId::new(format!("test-{key}"));
        let said = seen.script.remove(key);
        if let Some(wrong) = said.as_ref().and_then(|said| misfit(key, &asked, said)) {
            seen.misfit.get_or_insert(wrong);
        }
        seen.asked.push(Interrupt {
            id: id.clone(),
            name: asked.name.to_owned(),
            question: asked.question,
            answer_schema: asked.answer_schema,
            step: self.step.clone(),
            position: place.position,
            item: place.item,
            key: Some(key.to_owned()),
            asked_at: now,
            expires_at: asked.expires.map(|after| now.after(after)),
        });
        match said {
            Some(Said::Answer(value)) => {
                AskReply::Answered(Answer { id, name: None, value: Ok(value), by: None, at: now })
            }
            Some(Said::Nothing) => AskReply::Expired,
            None => {
                seen.open.insert(key.to_owned());
                let waker = seen.waker.take();
                drop(seen);
                waker.into_iter().for_each(Waker::wake);
                AskReply::Waits
            }
        }
    }

    fn sleep(&self, _: Place, key: &str, _: Wake) -> SleepReply {
        // No time passes in a step under test.
        match self.seen().effect_keys.insert(format!("timer/{key}")) {
            true => SleepReply::Due,
            false => SleepReply::KeyReused,
        }
    }

    fn begin_once(&self, _: Place, scope: EffectScope, key: &str, _: Guard) -> OnceReply {
        let mut seen = self.seen();
        let scoped = match scope {
            EffectScope::Position => format!("position/{key}"),
            EffectScope::Session => format!("session/{key}"),
        };
        match seen.effect_keys.insert(scoped) {
            true => {
                seen.running += 1;
                OnceReply::Run
            }
            false => OnceReply::KeyReused,
        }
    }

    fn effect_ended(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.effect_ended.notified())
    }

    fn retry_once(&self, _: Place, _: EffectScope, _: &str) -> OnceReply {
        // No effect is in doubt here.
        OnceReply::Stale
    }

    fn intend<'a>(
        &'a self,
        _: Place,
        _: EffectScope,
        _: &'a str,
        _: Guard,
    ) -> BoxFuture<'a, Result<(), StepError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn end_once<'a>(
        &'a self,
        _: Place,
        _: EffectScope,
        key: &'a str,
        value: Value,
    ) -> BoxFuture<'a, Result<(), StepError>> {
        self.seen().effects.push((key.to_owned(), value));
        self.effect_is_over();
        Box::pin(std::future::ready(Ok(())))
    }

    fn take_back<'a>(
        &'a self,
        _: Place,
        _: EffectScope,
        _: &'a str,
    ) -> BoxFuture<'a, Result<(), StepError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn drop_once(&self, _: Place, _: EffectScope, _: &str) {
        self.effect_is_over();
    }

    fn adopt(&self, _: Place, task: AbortHandle) {
        self.seen().tasks.push(task);
    }

    fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    #[cfg(feature = "code")]
    fn giving_up(&self, _: Place) -> CancellationToken {
        self.stopping.clone()
    }

    fn failure(&self) -> Option<Arc<Failure>> {
        self.failure.clone()
    }
}

/// Where the attempt stands.
pub(super) fn place() -> Place {
    Place { position: Position(1), step: 0, attempt: 1, item: None }
}
