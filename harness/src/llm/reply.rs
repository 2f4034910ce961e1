//! Replies of models.

use super::{ModelId, StopReason, ToolCall, Turn, Usage};
use serde::{Deserialize, Serialize};

/// The reply of a model.
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
    /// Its text, reasoning and tool calls.
    pub turn: Turn,
    /// Why it stopped.
    pub stop: StopReason,
    /// The usage of the exchange, as the provider reported it.
    #[serde(default)]
    pub usage: Usage,
    /// The model that replied. It may differ from the requested one.
    pub model: ModelId,
    /// Whether it is the reply to an earlier, equal request, so that there was no exchange.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
}

impl Reply {
    /// Creates a reply with unknown usage.
    pub fn new(turn: impl Into<Turn>, stop: StopReason, model: ModelId) -> Self {
        Self { turn: turn.into(), stop, usage: Usage::default(), model, cached: false }
    }

    /// Sets the usage of the exchange.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Marks the reply as one to an earlier, equal request. Its usage is zero.
    ///
    /// ```
    /// use harness::llm::{ModelId, Reply, StopReason, Usage};
    ///
    /// let reply = Reply::new("hello", StopReason::End, ModelId::new("p", "m")).as_cached();
    /// assert!(reply.cached && reply.usage == Usage::tokens(0, 0));
    /// ```
    #[must_use]
    pub fn as_cached(mut self) -> Self {
        self.cached = true;
        self.usage = Usage::tokens(0, 0);
        self
    }

    /// The text blocks in one string, or `None` if there is no text.
    pub fn text(&self) -> Option<String> {
        self.turn.text()
    }

    /// The tool calls in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.turn.calls()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_round_trips_through_json() {
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
