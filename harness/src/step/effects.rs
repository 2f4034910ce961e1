//! The seam between a step's body and whoever executes it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::id::{AgentId, OpId, Position, RunId, SessionId};
use crate::llm::{CallId, Spend};
use crate::question::Question;
use crate::state::encode;

use super::interrupt::{Answer, QuestionType};
use super::{Failure, StepError};

/// Who runs: the ids every event and span of a run carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ids {
    pub(crate) agent: AgentId,
    pub(crate) session: SessionId,
    pub(crate) run: RunId,
    pub(crate) parent: Option<RunId>,
}

/// Where in a run something happens: which attempt at which entry into which step, and at which of
/// its items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) position: Position,
    pub(crate) step: usize,
    pub(crate) attempt: u32,
    pub(crate) item: Option<u32>,
}

/// A value that a step emits as an event of its own: any type that can be debugged and serialised.
///
/// An observer gets it back by type with [`Event::custom`](crate::observe::Event::custom), or as
/// JSON under its type's name.
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

/// A question on its way out of a step, with its types erased.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) name: &'static str,
    pub(crate) question: Value,
    pub(crate) answer_schema: Value,
    /// How long it may wait; indefinitely without it.
    pub(crate) expires: Option<Duration>,
}

impl Asked {
    pub(crate) fn new<Q: Question>(question: &Q) -> Result<Self, String> {
        let QuestionType { name, answer_schema, .. } = QuestionType::of::<Q>();
        Ok(Self {
            name,
            question: encode(question)
                .map_err(|e| format!("the question `{}` does not serialise: {e}", Q::NAME))?,
            answer_schema: answer_schema(),
            expires: None,
        })
    }
}

/// What an executor says to an inline question.
pub(crate) enum AskReply {
    Answered(Answer),
    /// It was not answered in time.
    Expired,
    /// It waits: the asker must not go on.
    Waits,
    KeyReused,
    /// The attempt that asks is over.
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
    /// It is run again.
    AtLeastOnce,
    /// It is run only behind an intent, and never again behind one that has no result.
    AtMostOnce,
}

/// What an executor says to an effect that wants to run.
pub(crate) enum OnceReply {
    /// It ran before: its result.
    Done(Value),
    /// Run it, then say how it ended.
    Run,
    /// An intent is on record without a result: nobody knows whether it happened.
    InDoubt,
    /// Another item runs it for the whole session: ask again once an effect has ended.
    AtWork,
    KeyReused,
    Stale,
    /// The run may not act any more: it has lost its session to another, say.
    Refused(StepError),
}

/// What an executor does for a step's body. One object serves all steps of a run; `place` says who
/// asks, so that a task left over from an earlier attempt is told from the one at work.
pub(crate) trait Effects: Send + Sync {
    fn ids(&self) -> &Ids;
    fn step_name(&self, step: usize) -> &str;
    fn emit(&self, place: Place, payload: Arc<dyn Payload>);
    fn charge(&self, place: Place, spend: &Spend);
    fn spent(&self) -> Spend;
    /// Names a completion: the op id and a number that counts the completions of the position.
    fn begin_call(&self, place: Place, model: &str) -> CallId;
    fn end_call(&self, place: Place, call: CallId, model: &str, error: Option<&str>);
    fn ask(&self, place: Place, key: &str, asked: Asked) -> AskReply;
    /// Asks for leave to run an effect. After [`OnceReply::Run`] the effect counts as running until
    /// exactly one of [`end_once`](Self::end_once) and [`drop_once`](Self::drop_once) is through.
    fn begin_once(&self, place: Place, scope: EffectScope, key: &str, guard: Guard) -> OnceReply;
    /// Resolves once an effect ends that was at work when this was made.
    fn effect_ended(&self) -> BoxFuture<'_, ()>;
    /// Asks for leave to run an effect all the same, after [`OnceReply::InDoubt`].
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
    /// Records an effect's result: durable once this is through, and before the step sees it.
    /// Called in the effect's own task. If the future is dropped half-way, `drop_once` follows.
    fn end_once<'a>(
        &'a self,
        place: Place,
        scope: EffectScope,
        key: &'a str,
        value: Value,
    ) -> BoxFuture<'a, Result<(), StepError>>;
    /// An effect ended without a result: it failed, panicked or was aborted. Its intent stays.
    fn drop_once(&self, place: Place, scope: EffectScope, key: &str);
    fn adopt(&self, place: Place, task: AbortHandle);
    fn stopping(&self) -> &CancellationToken;
    fn failure(&self) -> Option<Arc<Failure>>;

    fn op_id(&self, place: Place) -> OpId {
        OpId { session: self.ids().session.clone(), position: place.position, item: place.item }
    }
}

#[cfg(test)]
mod tests;
