//! A turn of the model.

use super::content::joined;
use super::{ModelId, Protocol, StopReason, ToolCall, ToolOutcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A turn of the model: its text, reasoning and tool calls, in order.
///
/// ```
/// use harness::llm::{Block, ToolCall, Turn};
///
/// let turn = Turn::new([
///     Block::from("let me look"),
///     ToolCall::new("call-1-1", "search", r#"{"query": "rust"}"#).into(),
/// ]);
/// assert_eq!(turn.text().as_deref(), Some("let me look"));
/// assert_eq!(turn.calls().count(), 1);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Turn {
    /// The blocks, in the order the model wrote them.
    pub blocks: Vec<Block>,
    /// The model that wrote them, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelId>,
    /// Why the model stopped, if known, so that a route can detect a truncated reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopReason>,
}

/// A block of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Block {
    /// Text.
    Text(String),
    /// Reasoning, as far as the provider exposes it. Data that the provider needs back, such as a
    /// signature, follows as an opaque block.
    Reasoning(String),
    /// A tool call with its outcome. An outcome exists only inside its call, so it cannot be
    /// orphaned.
    Call {
        /// The call.
        call: ToolCall,
        /// Its outcome, once there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<ToolOutcome>,
    },
    /// Data for one protocol. It is sent back at the same position to the same protocol and model,
    /// and to no other.
    Opaque {
        /// The protocol it belongs to.
        protocol: Protocol,
        /// The model that wrote it.
        model: ModelId,
        /// The data, unchanged.
        data: Value,
    },
}

impl From<&str> for Block {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Block {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A call without an outcome.
impl From<ToolCall> for Block {
    fn from(call: ToolCall) -> Self {
        Self::Call { call, outcome: None }
    }
}

impl Turn {
    /// Creates a turn from blocks.
    pub fn new(blocks: impl IntoIterator<Item = Block>) -> Self {
        Self { blocks: blocks.into_iter().collect(), ..Self::default() }
    }

    /// The text blocks in one string, or `None` if there is no text.
    pub fn text(&self) -> Option<String> {
        joined(self.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            _ => None,
        }))
    }

    /// The tool calls in order, with or without outcome.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Call { call, .. } => Some(call),
            _ => None,
        })
    }
}

impl From<&str> for Turn {
    fn from(text: &str) -> Self {
        Self::new([text.into()])
    }
}

impl From<String> for Turn {
    fn from(text: String) -> Self {
        Self::new([text.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_joins_text_blocks_only() {
        let turn = Turn::new([
            Block::Reasoning("hm".into()),
            "a".into(),
            ToolCall::new("c", "t", "{}").into(),
            "b".into(),
        ]);
        assert_eq!(turn.text().as_deref(), Some("ab"));
        assert_eq!(Turn::new([Block::Reasoning("hm".into())]).text(), None);
        assert_eq!(Turn::from("").text(), None);
    }

    #[test]
    fn a_turn_keeps_every_block_in_json() {
        let turn = Turn::new([
            "a".into(),
            Block::Reasoning("hm".into()),
            Block::Opaque {
                protocol: "anthropic-messages".into(),
                model: ModelId::new("anthropic", "claude"),
                data: serde_json::json!({"signature": "x"}),
            },
            ToolCall::new("c", "t", "{\"a\": ").into(),
            Block::Call { call: ToolCall::new("d", "t", ""), outcome: Some(ToolOutcome::Skipped) },
        ]);
        let text = serde_json::to_string_pretty(&turn).unwrap();
        insta::assert_snapshot!(text, @r#"
{
  "blocks": [
    {
      "text": "a"
    },
    {
      "reasoning": "hm"
    },
    {
      "opaque": {
        "protocol": "anthropic-messages",
        "model": {
          "provider": "anthropic",
          "model": "claude"
        },
        "data": {
          "signature": "x"
        }
      }
    },
    {
      "call": {
        "call": {
          "id": "c",
          "name": "t",
          "arguments": "{\"a\": "
        }
      }
    },
    {
      "call": {
        "call": {
          "id": "d",
          "name": "t",
          "arguments": ""
        },
        "outcome": "skipped"
      }
    }
  ]
}
"#);
        assert_eq!(serde_json::from_str::<Turn>(&text).unwrap(), turn);
    }
}
