//! The events of calls that are over.

use std::time::Duration;

use crate::llm::{CallId, LlmError, Reply, Spend, ToolCall, ToolOutcome};
use crate::observe::EventKind;
use crate::step::{CallEnd, ToolEnd};

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A model call returned.
pub(super) fn call_ended(call: CallId, ended: CallEnd<'_>) -> EventKind {
    let CallEnd { model, reply, spent, took } = ended;
    let (error, reply) = (reply.err(), reply.ok());
    let replied = reply.map(|reply| reply.model.to_string()).filter(|replied| replied != model);
    EventKind::CallEnded {
        call,
        model: model.to_owned(),
        replied,
        stop: reply.map(|reply| reply.stop.clone()),
        error: error.map(LlmError::to_string),
        error_kind: error.map(|error| error.kind().name()),
        spent,
        cached: reply.is_some_and(|reply| reply.cached),
        recorded: false,
        took_ms: millis(took),
    }
}

/// A recorded reply stands in for a model call.
pub(super) fn call_recorded(call: CallId, model: &str, reply: &Reply) -> EventKind {
    let (spent, took) = (Spend::default(), Duration::ZERO);
    let mut kind = call_ended(call, CallEnd { model, reply: Ok(reply), spent, took });
    if let EventKind::CallEnded { recorded, .. } = &mut kind {
        *recorded = true;
    }
    kind
}

/// A tool call has an outcome.
pub(super) fn tool_ended(call: &ToolCall, ended: ToolEnd<'_>) -> EventKind {
    let ToolEnd { class, outcome, took } = ended;
    let failure = match outcome {
        ToolOutcome::Failed { kind, .. } => Some(*kind),
        _ => None,
    };
    EventKind::ToolEnded {
        call: call.id.clone(),
        tool: call.name.clone(),
        class,
        outcome: outcome.kind(),
        failure,
        recorded: took.is_none(),
        took_ms: took.map_or(0, millis),
    }
}
