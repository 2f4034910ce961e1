//! Proof that a transcript can be sent to a model.

use super::Transcript;
use crate::llm::{ToolCallId, ToolName};
use serde::Serialize;
use std::fmt;
use std::ops::Deref;

/// A transcript without open calls, created by [`Transcript::sealed`]. It dereferences to the
/// transcript.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(transparent)]
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

    /// The transcript.
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

/// The transcript has tool calls without outcome, so it cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    calls: Vec<OpenCall>,
}

/// A tool call without outcome. It omits the arguments, because errors are logged.
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
