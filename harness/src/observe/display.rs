//! Each event as one line.

use std::fmt;

use super::{Event, EventKind};

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
            Self::RunStarted { resumed: false, .. } => f.write_str("run started"),
            Self::RunStarted { resumed: true, .. } => f.write_str("run resumed"),
            Self::StepStarted => f.write_str("started"),
            Self::Custom(payload) => write!(f, "emitted {}", payload.name()),
            Self::CallStarted { call, model } => write!(f, "called {model} ({call})"),
            Self::Token { call, .. } => write!(f, "heard a part ({call})"),
            Self::CallEnded { call, model, recorded: true, .. } => {
                write!(f, "has a recorded reply of {model} ({call})")
            }
            Self::CallEnded { call, model, error: None, .. } => {
                write!(f, "heard from {model} ({call})")
            }
            Self::CallEnded { call, model, error: Some(error), .. } => {
                write!(f, "got no answer from {model} ({call}): {error}")
            }
            Self::ToolStarted { call, tool, .. } => write!(f, "called the tool {tool} ({call})"),
            Self::ToolEnded { call, tool, outcome, recorded: true, .. } => {
                write!(f, "the tool {tool} has a recorded outcome: {outcome} ({call})")
            }
            Self::ToolEnded { call, tool, outcome, .. } => {
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
            Self::Answered { expired: true, .. } => f.write_str("expired"),
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
            Self::Dropped => f.write_str("run dropped"),
            Self::Settled { end, .. } => write!(f, "run {end}"),
        }
    }
}
