//! What a model answers.

use super::{ModelId, ToolCall, Turn, Usage};
use serde::{Deserialize, Serialize};

/// What a model answers.
///
/// ```
/// use harness::llm::{ModelId, Reply, StopReason, Usage};
///
/// let reply = Reply::new("hello", StopReason::End, ModelId::new("ollama", "llama3.2"))
///     .with_usage(Usage::tokens(10, 2));
/// assert_eq!(reply.text().as_deref(), Some("hello"));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Reply {
    /// What it said, thought and called.
    pub turn: Turn,
    /// Why it stopped.
    pub stop: StopReason,
    /// What the exchange used, as far as the provider told.
    #[serde(default)]
    pub usage: Usage,
    /// The model that answered, which may be another than the one that was asked.
    pub model: ModelId,
}

impl Reply {
    /// Makes a reply, with nothing known about its usage.
    pub fn new(turn: impl Into<Turn>, stop: StopReason, model: ModelId) -> Self {
        Self { turn: turn.into(), stop, usage: Usage::default(), model }
    }

    /// Sets what the exchange used.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// The text blocks in one string, or `None` when there is no text.
    pub fn text(&self) -> Option<String> {
        self.turn.text()
    }

    /// The tool calls in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.turn.calls()
    }
}

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// It has said what it wanted to say.
    End,
    /// It waits for tools.
    ToolCalls,
    /// The reply reached its token limit, or the model's.
    MaxTokens,
    /// It wrote a stop sequence.
    StopSequence,
    /// It refused.
    Refusal,
    /// The provider held the reply, or the rest of it, back.
    ContentFilter,
    /// The provider paused a long turn; sending the transcript again continues it.
    Paused,
    /// A reason only this provider has, in its words.
    Other(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_survives_json() {
        let reasons = [StopReason::End, StopReason::Refusal, StopReason::Other("x".into())];
        for stop in reasons {
            let turn = Turn::new([ToolCall::new("c", "t", "{").into()]);
            let reply =
                Reply::new(turn, stop, ModelId::new("p", "m")).with_usage(Usage::tokens(1, 2));
            let text = serde_json::to_string(&reply).unwrap();
            assert_eq!(serde_json::from_str::<Reply>(&text).unwrap(), reply);
            assert_eq!(reply.calls().count(), 1);
            assert_eq!(reply.text(), None);
        }
    }
}
