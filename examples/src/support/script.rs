//! A model for programs without a key: it looks up the price of each order that is named, asks for the
//! refunds, and reports.

use harness::llm::scripted::{Line, say};
use harness::llm::{Block, Entry, Request, Scripted, ToolCall, ToolOutcome};
use serde_json::json;

/// A model that needs no key.
#[must_use]
pub fn model() -> Scripted {
    Scripted::from_fn(reply)
}

/// The price of an order in cents.
pub(super) fn price(order: &str) -> u64 {
    order.bytes().map(u64::from).sum::<u64>() * 10
}

fn reply(request: Request<'_>) -> Line {
    match request.transcript.entries().last() {
        Some(Entry::User(said)) => {
            let text = said.text().unwrap_or_default();
            let words = text.split(|c: char| !c.is_alphanumeric() && c != '-');
            let orders: Vec<&str> = words.filter(|word| word.starts_with("o-")).collect();
            match orders[..] {
                [] => say("Which order is it about?"),
                _ => orders.iter().fold(say("Let me look."), |line, order| {
                    line.and_call("price", json!({"order": order}))
                }),
            }
        }
        Some(Entry::Assistant(turn)) => {
            let calls: Vec<(&ToolCall, &ToolOutcome)> = turn
                .blocks
                .iter()
                .filter_map(|block| match block {
                    Block::Call { call, outcome: Some(outcome) } => Some((call, outcome)),
                    _ => None,
                })
                .collect();
            let order = |call: &ToolCall| call.json().unwrap_or_default()["order"].clone();
            if calls.iter().any(|(call, _)| call.name.as_str() == "refund") {
                let lines = calls.iter().map(|(call, outcome)| {
                    let text = outcome.content().text().unwrap_or_default();
                    format!("{}: {}", order(call).as_str().unwrap_or("?"), text.replace('\n', " "))
                });
                return say(lines.collect::<Vec<_>>().join("\n"));
            }
            calls.into_iter().fold(say("I ask for the refund."), |line, (call, _)| {
                let order = order(call);
                let cents = price(order.as_str().unwrap_or_default());
                line.and_call("refund", json!({"order": order, "cents": cents}))
            })
        }
        _ => say("How can I help?"),
    }
}
