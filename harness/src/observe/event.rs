use std::any::Any;
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::clock::UtcMillis;
use crate::id::{AgentId, InterruptId, Position, RunId, Seq, SessionId};
use crate::llm::{
    CallId, Delta, EffectClass, Spend, StopReason, ToolCallId, ToolFailure, ToolName,
};
use crate::session::End;
use crate::step::{Failure, Interrupt, Payload, StepId};

/// Something that happened in a run, and where.
///
/// `Display` prints one line. Serialized, it is one flat JSON object.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Event {
    /// The number of the event in the run, from 1. A token has the number of the event before it.
    pub number: u64,
    /// When it happened.
    pub at: UtcMillis,
    /// The agent.
    pub agent: AgentId,
    /// The session.
    pub session: SessionId,
    /// The run.
    pub run: RunId,
    /// The run whose step started this run, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunId>,
    /// Where in that run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_step: Option<Arc<ParentStep>>,
    /// The current step. `None` for an event of the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Arc<str>>,
    /// The entry into that step.
    pub position: Position,
    /// The item, from 0, in a step that has items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// What that item is called, if its step [says](crate::declare::NeedsItemBody::key) it. Items are recorded
    /// once, so that in all runs `position` and `item` are those of the same one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item_key: Option<Arc<str>>,
    /// The attempt at that entry, from 1. 0 for an event of the whole run.
    pub attempt: u32,
    /// The last entry of the session's log, once the event is logged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    /// The size of that entry in bytes, for the event of a single entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// The step that started a run: see [`RunRequest::detached`](crate::RunRequest::detached).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ParentStep {
    /// The agent of the step's run.
    pub agent: AgentId,
    /// The session of the step's run.
    pub session: SessionId,
    /// The step's name.
    pub step: Arc<str>,
    /// The entry into that step.
    pub position: Position,
    /// The item, from 0, in a step that has items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// The attempt at that entry, from 1.
    pub attempt: u32,
}

/// A run that a step has started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ChildRun {
    /// Its agent.
    pub agent: AgentId,
    /// Its session.
    pub session: SessionId,
    /// Its id.
    pub run: RunId,
}

/// Why a run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// An input started a turn.
    #[default]
    Start,
    /// A question was answered, or expired.
    Answer,
    /// A timer is due.
    Timer,
    /// The process of the run before ended, and that run did not settle.
    Crash,
    /// The turn of a child is over.
    Child,
    /// The caller resumed a turn that was stopped, has failed or has used up its budget.
    Resume,
}

impl Cause {
    /// The name that the cause has in JSON, for metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Answer => "answer",
            Self::Timer => "timer",
            Self::Crash => "crash",
            Self::Child => "child",
            Self::Resume => "resume",
        }
    }
}

/// What happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A run started.
    RunStarted {
        /// Whether it resumes a turn that had settled before its end.
        resumed: bool,
        /// Why it began.
        cause: Cause,
        /// How long that had waited for a run, in milliseconds: an input or an answer since it was
        /// sent, a timer or a question that expired since it was due. `None` where nothing waits, as
        /// with the input of a [run](crate::Agent::run).
        #[serde(skip_serializing_if = "Option::is_none")]
        waited_ms: Option<u64>,
        /// Whether a [worker](crate::worker) runs it.
        #[serde(skip_serializing_if = "is_false")]
        worker: bool,
        /// Its origin, as its session keeps it: see [`RunRequest::trace`](crate::RunRequest::trace).
        #[serde(skip_serializing_if = "Option::is_none")]
        trace: Option<Map<String, Value>>,
    },
    /// An attempt at a step started.
    StepStarted,
    /// A step emitted a custom value.
    #[serde(serialize_with = "custom")]
    Custom(Arc<dyn Payload>),
    /// A model was called.
    CallStarted {
        /// The id of the call.
        call: CallId,
        /// The model.
        model: String,
    },
    /// A part of the reply of a model call. Only observers that
    /// [want tokens](super::Observer::wants_tokens) receive it, and one that is too slow misses some.
    Token {
        /// The id of the call. A new id after a failed call says that its parts are to be discarded.
        call: CallId,
        /// The part.
        delta: Delta,
    },
    /// A model call returned. A recorded reply has this event alone, with an id of its own.
    CallEnded {
        /// The id of the call.
        call: CallId,
        /// The model.
        model: String,
        /// The model that replied, if it is another one.
        #[serde(skip_serializing_if = "Option::is_none")]
        replied: Option<String>,
        /// Why the reply stopped, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        stop: Option<StopReason>,
        /// Why it failed, if it did.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// The kind of that error, see [`LlmErrorKind::name`](crate::llm::LlmErrorKind::name).
        #[serde(skip_serializing_if = "Option::is_none")]
        error_kind: Option<&'static str>,
        /// What it has spent, failed exchanges included. The same was [charged](Self::Charged).
        spent: Spend,
        /// Whether it is the reply to an earlier, equal request, so that there was no exchange.
        #[serde(skip_serializing_if = "is_false")]
        cached: bool,
        /// Whether the reply was [recorded](crate::step::Calling::recorded) by an earlier attempt, so
        /// that the model was not called.
        #[serde(skip_serializing_if = "is_false")]
        recorded: bool,
        /// How long it took, in milliseconds.
        took_ms: u64,
    },
    /// A tool was called.
    ToolStarted {
        /// The id of the call.
        call: ToolCallId,
        /// The tool.
        tool: ToolName,
        /// What it does to the world.
        class: EffectClass,
    },
    /// A tool call has an outcome. A recorded outcome has this event alone.
    ToolEnded {
        /// The id of the call.
        call: ToolCallId,
        /// The tool.
        tool: ToolName,
        /// What it does to the world.
        class: EffectClass,
        /// The kind of the outcome, see [`ToolOutcome::kind`](crate::llm::ToolOutcome::kind).
        outcome: &'static str,
        /// Why it failed, if it did.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<ToolFailure>,
        /// Whether the outcome was recorded by an earlier attempt, so that the tool was not called.
        #[serde(skip_serializing_if = "is_false")]
        recorded: bool,
        /// How long it took, in milliseconds.
        took_ms: u64,
    },
    /// Tokens or cost were charged to the run.
    Charged {
        /// How much.
        spend: Spend,
    },
    /// A run that the step requested started. Its own events name this run as their parent.
    ChildStarted {
        /// The run.
        child: ChildRun,
    },
    /// A run that the step requested settled, or was dropped.
    ChildSettled {
        /// The run.
        child: ChildRun,
        /// Its outcome.
        end: End,
        /// What its turn has spent. It counts as spent by this run, too.
        spent: Spend,
    },
    /// An attempt failed, and the step will be retried.
    Retrying {
        /// Why it failed.
        failure: Failure,
        /// The time until the next attempt, in milliseconds.
        after_ms: u64,
    },
    /// A question waits for its answer.
    Asked {
        /// The question.
        interrupt: Interrupt,
    },
    /// A question was answered, or expired.
    Answered {
        /// The id of the question.
        id: InterruptId,
        /// The author of the answer, if it names one.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// Whether it was not answered in time.
        #[serde(skip_serializing_if = "is_false")]
        expired: bool,
    },
    /// A step waits for a timer that was started now.
    TimerStarted {
        /// Its key; none for the `.after(..)` of a step.
        #[serde(skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// When it is due.
        due: UtcMillis,
    },
    /// A timer is due, and the step that waits for it is about to continue.
    TimerFired {
        /// Its key; none for the `.after(..)` of a step.
        #[serde(skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// The items of a step were computed.
    Planned {
        /// How many there are.
        items: usize,
    },
    /// An item of a step is done.
    ItemDone {
        /// Why it failed, if it did.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
    },
    /// A step's result was committed.
    Committed {
        /// The signal that its route returned, if it has a route.
        #[serde(skip_serializing_if = "Option::is_none")]
        signal: Option<&'static str>,
        /// The next step. `None` at the end.
        #[serde(skip_serializing_if = "Option::is_none")]
        next: Option<Arc<str>>,
    },
    /// A step failed, and an error step runs next.
    Diverted {
        /// Why it failed.
        failure: Failure,
        /// The error step.
        next: Arc<str>,
    },
    /// The steps of `.finally(..)` start.
    Finishing {
        /// How the run will settle.
        end: End,
        /// The first of those steps.
        next: Arc<str>,
    },
    /// The run was dropped before it settled. This is its last event.
    Dropped,
    /// The run settled. This is the last event of a run, unless that was dropped.
    Settled {
        /// The outcome.
        end: End,
        /// How many steps this turn has committed.
        steps: u64,
        /// What this turn has spent.
        spent: Spend,
    },
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn custom<S: Serializer>(payload: &Arc<dyn Payload>, out: S) -> Result<S::Ok, S::Error> {
    let mut map = out.serialize_map(Some(2))?;
    map.serialize_entry("name", payload.name())?;
    map.serialize_entry("payload", &payload.to_json())?;
    map.end()
}

impl Event {
    /// The current step as an `St`, if it is one. An observer can match on the loop's own enum.
    ///
    /// ```
    /// # use harness::observe;
    /// # use harness::prelude::*;
    /// #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    /// enum Step { Write, Check }
    ///
    /// let log = observe::from_fn(|event| match event.step_as::<Step>() {
    ///     Some(Step::Write) => eprintln!("writing"),
    ///     Some(Step::Check) => eprintln!("checking"),
    ///     None => {}
    /// });
    /// # let _ = log;
    /// ```
    pub fn step_as<St: StepId>(&self) -> Option<St> {
        let name = self.step.as_deref()?;
        St::all().into_iter().find(|step| step.name() == name)
    }

    /// The value that a step emitted, if it is a `T`.
    ///
    /// ```
    /// # use harness::observe;
    /// #[derive(Debug, serde::Serialize)]
    /// struct Progress { percent: u8 }
    ///
    /// let bar = observe::from_fn(|event| {
    ///     if let Some(progress) = event.custom::<Progress>() {
    ///         println!("{} %", progress.percent);
    ///     }
    /// });
    /// # let _ = bar;
    /// ```
    pub fn custom<T: Payload>(&self) -> Option<&T> {
        match &self.kind {
            EventKind::Custom(payload) => (&**payload as &dyn Any).downcast_ref(),
            _ => None,
        }
    }
}

impl EventKind {
    pub(super) fn is_token(&self) -> bool {
        matches!(self, Self::Token { .. })
    }
}
