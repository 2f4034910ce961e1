//! Ids of tool calls, for protocols that may have none.

use harness::llm::{Block, Entry, ToolCallId, Transcript};

const PREFIX: &str = "call-";

/// Makes ids that the transcript does not have: the same ones each time.
#[derive(Clone, Debug)]
pub(crate) struct MadeIds(u64);

impl MadeIds {
    pub(crate) fn after(transcript: &Transcript) -> Self {
        let turns = transcript.entries().iter().filter_map(|entry| match entry {
            Entry::Assistant(turn) => Some(turn),
            _ => None,
        });
        let blocks = turns.flat_map(|turn| &turn.blocks);
        let made = blocks.filter_map(|block| match block {
            Block::Call { call, .. } => {
                call.id.as_str().strip_prefix(PREFIX)?.parse::<u64>().ok()?.checked_add(1)
            }
            _ => None,
        });
        Self(made.max().unwrap_or(1))
    }

    pub(crate) fn next(&mut self) -> ToolCallId {
        let id = ToolCallId::new(format!("{PREFIX}{}", self.0));
        self.0 = self.0.saturating_add(1);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::llm::{Message, ToolCall, Turn, user};

    #[test]
    fn ids_are_new_to_the_transcript() {
        let turn = |ids: &[&str]| {
            let calls = ids.iter().map(|id| ToolCall::new(*id, "t", "{}").into());
            Message::Assistant(Turn::new(calls))
        };
        let of = |talk: &Transcript| MadeIds::after(talk).next().to_string();
        assert_eq!(of(&Transcript::from_iter([user("hi")])), "call-1");
        let ids = ["toolu_1", "call-7", "call-1-0", "call-x"];
        assert_eq!(of(&Transcript::from_iter([turn(&ids), turn(&["call-3"])])), "call-8");
    }
}
