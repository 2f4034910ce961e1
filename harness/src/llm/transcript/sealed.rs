//! Proof that a transcript can be sent.

use super::Transcript;
use crate::llm::{ToolCallId, ToolName};
use std::fmt;
use std::ops::Deref;

/// A transcript without open calls, made by [`Transcript::sealed`]. It reads as the transcript.
#[derive(Clone, Copy, Debug)]
pub struct Sealed<'a>(&'a Transcript);

impl<'a> Sealed<'a> {
    pub(super) fn of(transcript: &'a Transcript) -> Result<Self, Open> {
        if !transcript.has_open_calls() {
            return Ok(Self(transcript));
        }
        let calls = transcript
            .open_refs()
            .map(|call| OpenCall { id: call.id.clone(), name: call.name.clone() });
        Err(Open { calls: calls.collect() })
    }

    /// The transcript itself.
    pub fn transcript(&self) -> &'a Transcript {
        self.0
    }
}

impl Deref for Sealed<'_> {
    type Target = Transcript;

    fn deref(&self) -> &Transcript {
        self.0
    }
}

/// Tool calls wait for their outcome, so the transcript cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    calls: Vec<OpenCall>,
}

/// A call that waits for its outcome; without its arguments, since errors end up in logs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenCall {
    /// The id of the call.
    pub id: ToolCallId,
    /// The tool that was called.
    pub name: ToolName,
}

impl Open {
    /// The calls, in order.
    pub fn calls(&self) -> &[OpenCall] {
        &self.calls
    }
}

impl fmt::Display for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 3;
        let tool_calls = match self.calls.len() {
            1 => "a tool call has no outcome".to_owned(),
            count => format!("{count} tool calls have no outcome"),
        };
        write!(f, "{tool_calls}: ")?;
        for (at, OpenCall { id, name }) in self.calls.iter().take(SHOWN).enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}`{id}` of `{name}`")?;
        }
        if self.calls.len() > SHOWN {
            write!(f, " and {} more", self.calls.len() - SHOWN)?;
        }
        f.write_str(" (record one for each, for example those of `ToolSet::call_all`)")
    }
}

impl std::error::Error for Open {}
