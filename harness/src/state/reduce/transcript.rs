use crate::llm::{Block, Changed, Entry, Message, Pushed, Transcript};
use crate::state::FieldOps;

use super::Fold;

/// Pushes entries and fills in the outcomes of tool calls. Records only what the message holds.
impl Fold for Transcript {
    type Item = Message;

    fn fold(&mut self, message: Message, ops: &mut FieldOps<'_>) {
        if let Message::Edit(edit) = message {
            match self.edit(edit) {
                Ok(changed) => record(self, &changed, ops),
                Err(error) => tracing::warn!("dropped an edit of a transcript: {error}"),
            }
            return;
        }
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
                let pinned = self.is_pinned(entry);
                if let Some(Block::Call { outcome: Some(outcome), .. }) = filled {
                    let mut entry = ops.index(entry);
                    let mut entry = if pinned { entry.key("pinned") } else { entry };
                    entry
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

/// Records an edit as operations on the list.
fn record(talk: &Transcript, changed: &[Changed], ops: &mut FieldOps<'_>) {
    if !ops.is_on() {
        return;
    }
    // An entry that is set has its place before those that are removed after it.
    for change in changed {
        match change {
            Changed::Set { index } => {
                if let Some(entry) = talk.stored(*index) {
                    ops.index(*index).set(&entry);
                }
            }
            Changed::Removed { index } => ops.del_at(*index),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use crate::State;
    use crate::llm::{Edit, Message, ToolCall, ToolOutcome, Transcript, Turn, user};
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
        let chat = replayed(said);
        assert!(!chat.talk.has_open_calls());
    }

    #[test]
    fn recorded_edits_replay_to_the_same_transcript() {
        let call = ToolCall::new("c1", "search", "{}");
        let said = [
            user("rules"),
            Edit::pin(0).into(),
            user("a"),
            Message::Assistant(Turn::new([call.clone().into()])),
            Edit::pin(2).into(),
            Message::Outcome { call: call.id.clone(), outcome: ToolOutcome::ok("found") },
            user("b"),
            user("c"),
            Edit::summarize(0..5, "short").into(),
            Edit::unpin(2).into(),
            Edit::remove(9..12).into(),
            Edit::remove(0..2).into(),
        ];
        let chat = replayed(said);
        assert_eq!(chat.talk.len(), 2);
        assert!(chat.talk.is_pinned(0));
    }

    fn replayed(said: impl IntoIterator<Item = Message>) -> Chat {
        let mut chat = Chat::default();
        let mut folded = encode(&chat).unwrap();
        for message in said {
            let mut ops = Ops::on();
            chat.apply(Chat::update().talk([message]), &mut ops);
            fold(&mut folded, &ops.finish().unwrap()).unwrap();
            assert_eq!(folded, encode(&chat).unwrap());
        }
        chat
    }
}
