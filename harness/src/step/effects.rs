//! The seam between a step's body and whoever executes it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::id::{AgentId, OpId, Position, RunId, SessionId};
use crate::llm::{CallId, Spend};
use crate::question::Question;

use super::Failure;
use super::action::check;
use super::interrupt::{Answer, Check};

/// Who runs: the ids every event and span of a run carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ids {
    pub(crate) agent: AgentId,
    pub(crate) session: SessionId,
    pub(crate) run: RunId,
    pub(crate) parent: Option<RunId>,
}

/// Where in a run something happens: which attempt at which entry into which step.
///
/// Two words, so that it travels in registers: every step hands it on several times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) position: Position,
    /// The step in the upper half, the attempt in the lower.
    entry: u64,
}

impl Place {
    pub(crate) fn new(step: usize, position: Position, attempt: u32) -> Self {
        Self { position, entry: (step as u64) << 32 | u64::from(attempt) }
    }

    pub(crate) fn step(self) -> usize {
        (self.entry >> 32) as usize
    }

    pub(crate) fn attempt(self) -> u32 {
        self.entry as u32
    }
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
    pub(crate) check: Check,
}

impl Asked {
    pub(crate) fn new<Q: Question>(question: &Q) -> Result<Self, String> {
        Ok(Self {
            name: Q::NAME,
            question: serde_json::to_value(question)
                .map_err(|e| format!("the question `{}` does not serialise: {e}", Q::NAME))?,
            answer_schema: schemars::schema_for!(Q::Answer).to_value(),
            check: check::<Q>(),
        })
    }
}

/// What an executor says to an inline question.
pub(crate) enum AskReply {
    Answered(Answer),
    /// It waits: the asker must not go on.
    Waits,
    KeyReused,
    /// The attempt that asks is over: nobody listens.
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

/// What an executor says to an effect that wants to run.
pub(crate) enum OnceReply {
    /// It ran before: its result.
    Done(Value),
    /// Run it, then say how it ended.
    Run,
    KeyReused,
    Stale,
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
    fn begin_once(&self, place: Place, scope: EffectScope, key: &str) -> OnceReply;
    fn end_once(&self, place: Place, scope: EffectScope, key: &str, result: Option<Value>);
    fn adopt(&self, place: Place, task: AbortHandle);
    fn stopping(&self) -> &CancellationToken;
    fn failure(&self) -> Option<Arc<Failure>>;

    fn op_id(&self, place: Place) -> OpId {
        OpId { session: self.ids().session.clone(), position: place.position }
    }
}
