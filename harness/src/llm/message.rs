//! Messages.

use super::{Content, Edit, Reply, ToolCallId, ToolOutcome, Turn};
use serde::{Deserialize, Serialize};

/// A message that is folded into a [`Transcript`](super::Transcript).
///
/// ```
/// use harness::llm::{Message, ToolOutcome, Transcript, Turn, user};
///
/// let talk = Transcript::from_iter([user("hi"), Turn::from("hello").into()]);
/// assert_eq!(talk.last_text().as_deref(), Some("hello"));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Message {
    /// A message of the user.
    User(Content),
    /// A turn of the model.
    Assistant(Turn),
    /// The outcome of a tool call.
    Outcome {
        /// The call.
        call: ToolCallId,
        /// The outcome.
        outcome: ToolOutcome,
    },
    /// A change of earlier entries.
    Edit(Edit),
}

/// Creates a message of the user from text or parts.
///
/// ```
/// use harness::llm::{Content, Message, user};
///
/// assert_eq!(user("hi"), Message::User(Content::from("hi")));
/// ```
pub fn user(content: impl Into<Content>) -> Message {
    Message::User(content.into())
}

impl From<Turn> for Message {
    fn from(turn: Turn) -> Self {
        Self::Assistant(turn)
    }
}

/// The turn of the reply. Its model and stop reason are set from the reply if it has none.
impl From<Edit> for Message {
    fn from(edit: Edit) -> Self {
        Self::Edit(edit)
    }
}

impl From<Reply> for Message {
    fn from(reply: Reply) -> Self {
        let mut turn = reply.turn;
        turn.model.get_or_insert(reply.model);
        turn.stop.get_or_insert(reply.stop);
        Self::Assistant(turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::{ModelId, StopReason};

    #[test]
    fn a_reply_leaves_model_and_stop_reason_in_its_turn() {
        let model = ModelId::new("p", "m");
        let reply = Reply::new("cut", StopReason::MaxTokens, model.clone());
        let Message::Assistant(turn) = reply.into() else {
            panic!("a reply is a turn");
        };
        assert_eq!(turn.text().as_deref(), Some("cut"));
        assert_eq!(turn.model, Some(model));
        assert_eq!(turn.stop, Some(StopReason::MaxTokens));
    }
}
