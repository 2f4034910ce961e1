use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::clock::UtcMillis;
use crate::id::{AgentId, InterruptId, Position, RunId, Seq, SessionId};
use crate::llm::{CallId, Delta, EffectClass, Spend, ToolCallId, ToolName};
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
    /// The attempt at that entry, from 1. 0 for an event of the whole run.
    pub attempt: u32,
    /// The last entry of the session's log, once the event is logged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
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

/// What happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A run started.
    RunStarted {
        /// Whether it resumes a turn that had settled before its end.
        resumed: bool,
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
    /// A model call returned.
    CallEnded {
        /// The id of the call.
        call: CallId,
        /// The model.
        model: String,
        /// Why it failed, if it did.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
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
    /// A tool call has an outcome.
    ToolEnded {
        /// The id of the call.
        call: ToolCallId,
        /// The tool.
        tool: ToolName,
        /// The kind of the outcome, see [`ToolOutcome::kind`](crate::llm::ToolOutcome::kind).
        outcome: &'static str,
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
    /// A question was answered.
    Answered {
        /// The id of the question.
        id: InterruptId,
        /// The author of the answer, if it names one.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<String>,
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
    /// The run settled. This is the last event of every run.
    Settled {
        /// The outcome.
        end: End,
        /// How many steps this turn has committed.
        steps: u64,
        /// What this turn has spent.
        spent: Spend,
    },
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

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(step) = &self.step {
            write!(f, "{step}#{}", self.position)?;
            if let Some(item) = self.item {
                write!(f, "[{item}]")?;
            }
            if self.attempt > 1 {
                write!(f, " (attempt {})", self.attempt)?;
            }
            f.write_str(" ")?;
        }
        fmt::Display::fmt(&self.kind, f)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RunStarted { resumed: false } => f.write_str("run started"),
            Self::RunStarted { resumed: true } => f.write_str("run resumed"),
            Self::StepStarted => f.write_str("started"),
            Self::Custom(payload) => write!(f, "emitted {}", payload.name()),
            Self::CallStarted { call, model } => write!(f, "called {model} ({call})"),
            Self::Token { call, .. } => write!(f, "heard a part ({call})"),
            Self::CallEnded { call, model, error: None } => {
                write!(f, "heard from {model} ({call})")
            }
            Self::CallEnded { call, model, error: Some(error) } => {
                write!(f, "got no answer from {model} ({call}): {error}")
            }
            Self::ToolStarted { call, tool, .. } => write!(f, "called the tool {tool} ({call})"),
            Self::ToolEnded { call, tool, outcome } => {
                write!(f, "the tool {tool} ended: {outcome} ({call})")
            }
            Self::Charged { spend } => {
                write!(f, "charged {} tokens", spend.usage.total().unwrap_or(0))
            }
            Self::ChildStarted { child } => write!(f, "started a run of {}", child.agent),
            Self::ChildSettled { child, end, .. } => write!(f, "run of {} {end}", child.agent),
            Self::Retrying { failure, after_ms } => {
                write!(f, "failed: {failure}; again in {after_ms} ms")
            }
            Self::Asked { interrupt } => write!(f, "asked {}", interrupt.name),
            Self::Answered { by: Some(by), .. } => write!(f, "answered by {by}"),
            Self::Answered { by: None, .. } => f.write_str("answered"),
            Self::TimerStarted { key: Some(key), due } => {
                write!(f, "started timer {key}, due {due}")
            }
            Self::TimerStarted { key: None, due } => write!(f, "waits until {due}"),
            Self::TimerFired { key: Some(key) } => write!(f, "timer {key} is due"),
            Self::TimerFired { key: None } => f.write_str("is due"),
            Self::Planned { items: 1 } => f.write_str("planned 1 item"),
            Self::Planned { items } => write!(f, "planned {items} items"),
            Self::ItemDone { failure: None } => f.write_str("done"),
            Self::ItemDone { failure: Some(failure) } => write!(f, "failed: {failure}"),
            Self::Committed { signal, next } => {
                f.write_str("committed")?;
                if let Some(signal) = signal {
                    write!(f, " {signal}")?;
                }
                write!(f, " -> {}", next.as_deref().unwrap_or("end"))
            }
            Self::Diverted { failure, next } => write!(f, "failed: {failure} -> {next}"),
            Self::Finishing { end, next } => write!(f, "{end}; finally -> {next}"),
            Self::Settled { end, .. } => write!(f, "run {end}"),
        }
    }
}
