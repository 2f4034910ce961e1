//! Why a model stops.

use serde::{Deserialize, Serialize};

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The reply is complete.
    End,
    /// It waits for the outcomes of tool calls.
    ToolCalls,
    /// The reply reached a token limit of the request or the model.
    MaxTokens,
    /// It wrote a stop sequence.
    StopSequence,
    /// It refused.
    Refusal,
    /// The provider withheld all or part of the reply.
    ContentFilter,
    /// The provider paused a long turn. Sending the transcript again continues it.
    Paused,
    /// A reason specific to the provider, in its words.
    Other(String),
}

impl StopReason {
    /// The name that it has in JSON; of another reason, the provider's word.
    pub fn name(&self) -> &str {
        match self {
            Self::End => "end",
            Self::ToolCalls => "tool_calls",
            Self::MaxTokens => "max_tokens",
            Self::StopSequence => "stop_sequence",
            Self::Refusal => "refusal",
            Self::ContentFilter => "content_filter",
            Self::Paused => "paused",
            Self::Other(reason) => reason,
        }
    }
}
