use crate::llm::{Block, Entry, Message, Pushed, Transcript};
use crate::state::FieldOps;

use super::Fold;

/// Pushes entries and fills in the outcomes of tool calls. Records only what the message holds.
impl Fold for Transcript {
    type Item = Message;

    fn fold(&mut self, message: Message, ops: &mut FieldOps<'_>) {
        let pushed = self.push(message);
        if !ops.is_on() {
            return;
        }
        match pushed {
            Pushed::Entry { index } => {
                if let Some(entry) = self.entries().get(index) {
                    ops.push(entry);
                }
            }
            Pushed::Outcome { entry, block } => {
                let filled = self.entries().get(entry).and_then(|entry| match entry {
                    Entry::Assistant(turn) => turn.blocks.get(block),
                    _ => None,
                });
                if let Some(Block::Call { outcome: Some(outcome), .. }) = filled {
                    ops.index(entry)
                        .key("assistant")
                        .key("blocks")
                        .index(block)
                        .key("call")
                        .key("outcome")
                        .set(outcome);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use crate::State;
    use crate::llm::{Message, ToolCall, ToolOutcome, Transcript, Turn, user};
    use crate::state::{Ops, encode, fold};

    #[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Chat {
        #[state(reduce = transcript)]
        talk: Transcript,
    }

    #[test]
    fn recorded_operations_replay_to_the_same_transcript() {
        let call = ToolCall::new("c1", "search", "{}");
        let said = [
            user("hi"),
            Message::Assistant(Turn::new([call.clone().into()])),
            Message::Outcome { call: call.id.clone(), outcome: ToolOutcome::ok("found") },
            Message::Outcome { call: call.id, outcome: ToolOutcome::ok("found") },
        ];
        let mut chat = Chat::default();
        let mut folded = encode(&chat).unwrap();
        for message in said {
            let mut ops = Ops::on();
            chat.apply(Chat::update().talk([message]), &mut ops);
            fold(&mut folded, &ops.finish().unwrap()).unwrap();
        }
        assert_eq!(folded, encode(&chat).unwrap());
        assert!(!chat.talk.has_open_calls());
    }
}
