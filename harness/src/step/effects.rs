//! The interface between a step's body and its executor.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use crate::clock::UtcMillis;
use crate::id::{AgentId, OpId, Position, RunId, SessionId};
use crate::llm::{
    CallId, Delta, EffectClass, LlmError, Reply, Request, Spend, ToolCall, ToolOutcome,
};
use crate::question::Question;
use crate::state::to_json;
use crate::store::FormerHolder;

use super::interrupt::{Answer, Interrupt, QuestionType};
use super::{Failure, StepError};

/// The ids that every event and span of a run carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ids {
    pub(crate) agent: AgentId,
    pub(crate) session: SessionId,
    pub(crate) run: RunId,
    pub(crate) parent: Option<RunId>,
}

/// A place in a run: an attempt at an entry into a step, and an item of that step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) position: Position,
    pub(crate) step: usize,
    pub(crate) attempt: u32,
    pub(crate) item: Option<u32>,
}

/// A value that a step emits as a custom event: any type that implements `Debug` and `Serialize`.
///
/// An observer reads it by type with [`Event::custom`](crate::observe::Event::custom), or as JSON
/// under the name of its type.
pub trait Payload: Any + fmt::Debug + Send + Sync {
    /// The type's name, without its path.
    fn name(&self) -> &'static str;

    /// The value as JSON; null if it does not serialise.
    fn to_json(&self) -> Value;
}

impl<T: Serialize + fmt::Debug + Send + Sync + 'static> Payload for T {
    fn name(&self) -> &'static str {
        let full = std::any::type_name::<T>();
        let base = full.split('<').next().unwrap_or(full);
        base.rsplit("::").next().unwrap_or(base)
    }

    fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or(Value::Null)
    }
}

/// A question that a step asks, with its types erased.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) name: &'static str,
    pub(crate) question: Value,
    pub(crate) answer_schema: Value,
    /// How long it waits; indefinitely if `None`.
    pub(crate) expires: Option<Duration>,
}

impl Asked {
    /// Whether the interrupt asks the same.
    pub(crate) fn is(&self, interrupt: &Interrupt) -> bool {
        interrupt.name == self.name
            && interrupt.question == self.question
            && interrupt.answer_schema == self.answer_schema
    }

    pub(crate) fn new<Q: Question>(question: &Q) -> Result<Self, String> {
        let QuestionType { name, answer_schema, .. } = QuestionType::of::<Q>();
        Ok(Self {
            name,
            question: to_json(question)
                .map_err(|e| format!("failed to encode the question `{}`: {e}", Q::NAME))?,
            answer_schema: answer_schema(),
            expires: None,
        })
    }
}

/// The reply of the executor to an inline question.
pub(crate) enum AskReply {
    Answered(Answer),
    /// It expired without an answer.
    Expired,
    /// Another question was answered under the key: its JSON.
    Changed(Value),
    /// It is open: the step must not continue.
    Waits,
    KeyReused,
    /// The attempt that asks has ended.
    Stale,
}

/// How long a step sleeps.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wake {
    At(UtcMillis),
    /// After this time, from when the timer is started.
    After(Duration),
}

/// The reply of the executor to a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SleepReply {
    /// It is due.
    Due,
    /// It is not: the step must not continue.
    Waits,
    KeyReused,
    /// The attempt that sleeps has ended.
    Stale,
}

/// How long the result of an effect is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectScope {
    /// As long as the position it was made at.
    #[default]
    Position,
    /// As long as the session.
    Session,
}

/// How often an effect may happen if the process dies between it and its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// It runs again.
    AtLeastOnce,
    /// It runs only after its intent is recorded, and never again while that has no result.
    AtMostOnce,
}

/// The reply of the executor to an effect.
pub(crate) enum OnceReply {
    /// It has run: its recorded result.
    Done(Value),
    /// Run it, then report how it ended.
    Run,
    /// Its intent is recorded without a result: it is unknown whether it happened.
    InDoubt(FormerHolder),
    /// Another item runs it for the whole session: ask again once an effect has ended.
    AtWork,
    KeyReused,
    Stale,
    /// The run may not act any more, for example because it lost its lease.
    Refused(StepError),
}

/// How a model call ended.
pub(crate) struct CallEnd<'a> {
    pub(crate) model: &'a str,
    pub(crate) reply: Result<&'a Reply, &'a LlmError>,
    pub(crate) spent: Spend,
    pub(crate) took: Duration,
}

/// How a tool call ended.
pub(crate) struct ToolEnd<'a> {
    pub(crate) class: EffectClass,
    pub(crate) outcome: &'a ToolOutcome,
    /// None if the outcome was recorded by an earlier attempt.
    pub(crate) took: Option<Duration>,
}

/// What the executor does for a step's body. One object serves all steps of a run. `place`
/// identifies the caller, so that a task of an earlier attempt is recognized as stale.
pub(crate) trait Effects: Send + Sync {
    fn ids(&self) -> &Ids;
    fn step_name(&self, step: usize) -> &str;
    fn emit(&self, place: Place, payload: Arc<dyn Payload>);
    fn charge(&self, place: Place, spend: &Spend);
    fn spent(&self) -> Spend;
    /// The span of an attempt. None if the run has no spans of its steps.
    #[cfg(feature = "code")]
    fn span(&self, place: Place) -> Span {
        let _ = place;
        Span::none()
    }
    /// A model call begins. Without an id it gets one: the op id, and the count of calls at the position.
    /// The call happens in the span.
    fn begin_call(&self, place: Place, id: Option<CallId>, model: &str) -> (CallId, Span);
    /// What the call of the span asks.
    fn request(&self, span: &Span, request: &Request<'_>) {
        let _ = (span, request);
    }
    fn end_call(&self, place: Place, call: CallId, ended: CallEnd<'_>);
    /// A reply was recorded by an earlier attempt.
    fn recorded_call(&self, place: Place, id: Option<CallId>, model: &str, reply: &Reply);
    /// The call happens in the span.
    fn begin_tool(&self, place: Place, call: &ToolCall, class: EffectClass) -> Span;
    fn end_tool(&self, place: Place, call: &ToolCall, ended: ToolEnd<'_>);
    /// Whether an observer wants the parts of replies.
    fn wants_tokens(&self) -> bool;
    /// Publishes a part of a reply. Never blocks.
    fn token(&self, place: Place, call: &CallId, delta: &Delta);
    /// When the attempt is given up: the step's time-out or the end of the wall budget.
    fn deadline(&self, place: Place) -> Option<Instant>;
    fn ask(&self, place: Place, key: &str, asked: Asked) -> AskReply;
    /// Starts a timer, unless one was started under the key.
    fn sleep(&self, place: Place, key: &str, wake: Wake) -> SleepReply;
    /// The recorded result of an effect. Does not use the key.
    fn recorded(&self, place: Place, scope: EffectScope, key: &str) -> Option<Value>;
    /// Asks for leave to run an effect. After [`OnceReply::Run`] the effect counts as running until
    /// exactly one of [`end_once`](Self::end_once) and [`drop_once`](Self::drop_once) is through.
    fn begin_once(&self, place: Place, scope: EffectScope, key: &str, guard: Guard) -> OnceReply;
    /// Resolves once an effect ends that was at work when this was made.
    fn effect_ended(&self) -> BoxFuture<'_, ()>;
    /// Asks for leave to run an effect all the same, after [`InDoubt`](OnceReply::InDoubt).
    fn retry_once(&self, place: Place, scope: EffectScope, key: &str) -> OnceReply;
    /// An effect is about to happen: once this is through, everything before it is durable, and of
    /// one that must happen at most once, that it is about to. Called in the effect's own task,
    /// before the effect.
    fn intend<'a>(
        &'a self,
        place: Place,
        scope: EffectScope,
        key: &'a str,
        guard: Guard,
    ) -> BoxFuture<'a, Result<(), StepError>>;
    /// Records an effect's result: durable when the future completes, and before the step sees it.
    /// Called in the effect's own task. If the future is dropped half-way, `drop_once` follows.
    fn end_once<'a>(
        &'a self,
        place: Place,
        scope: EffectScope,
        key: &'a str,
        value: Value,
    ) -> BoxFuture<'a, Result<(), StepError>>;
    /// Takes back the intent of an effect that did not happen.
    fn take_back<'a>(
        &'a self,
        place: Place,
        scope: EffectScope,
        key: &'a str,
    ) -> BoxFuture<'a, Result<(), StepError>>;
    /// An effect ended without a result: it failed, panicked or was aborted. Its intent stays, unless
    /// it was taken back.
    fn drop_once(&self, place: Place, scope: EffectScope, key: &str);
    fn adopt(&self, place: Place, task: AbortHandle);
    fn stopping(&self) -> &CancellationToken;
    /// Cancelled when the attempt is: it is given up, and its effects are waited for.
    #[cfg(feature = "code")]
    fn giving_up(&self, place: Place) -> CancellationToken;
    fn failure(&self) -> Option<Arc<Failure>>;

    /// The executor itself, for runs that a step starts.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;

    /// Identifies the session among those that had its id.
    fn incarnation(&self) -> String;

    fn op_id(&self, place: Place) -> OpId {
        let Place { position, item, .. } = place;
        OpId {
            session: self.ids().session.clone(),
            incarnation: self.incarnation(),
            position,
            item,
        }
    }
}

#[cfg(test)]
mod tests;
