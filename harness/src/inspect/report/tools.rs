//! What a tool loop records, in words.

use serde::Deserialize as _;
use serde_json::Value;

use crate::llm::ToolOutcome;

use super::lines::clipped;

/// The most characters of a call, and of its outcome.
const MAX_TEXT: usize = 160;

/// A tool call with its arguments, of an item that is one.
pub(super) fn call(item: &Value) -> Option<String> {
    let call = item.get("call").filter(|_| item.get("ruling").is_some())?;
    let (name, arguments) = (call.get("name")?.as_str()?, call.get("arguments")?.as_str()?);
    Some(clipped(&format!("{name} {arguments}"), MAX_TEXT))
}

/// The outcome of a tool call, of the result of an item that is one.
pub(super) fn done(result: &Value) -> Option<String> {
    result.get("call").filter(|call| call.is_string())?;
    outcome(result.get("outcome")?)
}

/// The outcome of a tool call.
pub(super) fn outcome(value: &Value) -> Option<String> {
    let outcome = ToolOutcome::deserialize(value).ok()?;
    let kind = outcome.kind().replace('_', " ");
    Some(match outcome.content().text() {
        Some(text) => format!("{kind}: {}", clipped(&text, MAX_TEXT)),
        None => kind,
    })
}
