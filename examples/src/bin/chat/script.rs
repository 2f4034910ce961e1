//! A model for programs without a key: it writes notes down, reads them, and repeats the rest.

use harness::llm::scripted::{Line, call, say};
use harness::llm::{Entry, Request, Scripted, Turn};
use serde_json::json;

pub(super) fn model() -> Scripted {
    Scripted::from_fn(reply)
}

fn reply(request: Request<'_>) -> Line {
    match request.transcript.entries().last() {
        Some(Entry::User(said)) => {
            let text = said.text().unwrap_or_default();
            match text.strip_prefix("note ") {
                Some(note) => call("write_note", json!({"text": note})),
                None if text == "notes" => call("read_notes", json!({})),
                None => say(format!("You said: {text}. (Try `note buy milk`, then `notes`.)")),
            }
        }
        Some(Entry::Assistant(turn)) => say(format!("The tool says: {}", outcome(turn))),
        _ => say("Hello."),
    }
}

fn outcome(turn: &Turn) -> String {
    use harness::llm::Block;
    let outcomes = turn.blocks.iter().filter_map(|block| match block {
        Block::Call { outcome: Some(outcome), .. } => outcome.content().text(),
        _ => None,
    });
    outcomes.collect::<Vec<_>>().join(" ").trim().to_owned()
}
