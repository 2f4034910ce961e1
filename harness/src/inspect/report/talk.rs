//! Conversations with models that a state holds.

use serde::Deserialize as _;
use serde_json::Value;

use crate::llm::Transcript;

/// The fields of a state that are conversations with at least one entry, with their names.
///
/// ```
/// use harness::inspect::report::conversations;
/// use serde_json::json;
///
/// let state = json!({"talk": [{"user": [{"text": "hello"}]}], "lines": ["hello"], "none": []});
/// let found = conversations(&state);
/// assert_eq!((found.len(), &*found[0].0), (1, "talk"));
/// ```
#[must_use]
pub fn conversations(state: &Value) -> Vec<(String, Transcript)> {
    let fields = state.as_object().into_iter().flatten();
    let talks = fields.filter(|(_, value)| value.get(0).is_some_and(is_entry));
    let decoded = talks.filter_map(|(name, value)| {
        let talk = Transcript::deserialize(value).ok()?;
        Some((name.clone(), talk))
    });
    decoded.collect()
}

/// Whether it looks like an entry, before all of a long list is decoded.
fn is_entry(value: &Value) -> bool {
    let one = value.as_object().filter(|entry| entry.len() == 1);
    let name = one.and_then(|entry| entry.keys().next());
    name.is_some_and(|name| matches!(&**name, "user" | "assistant" | "pinned"))
}
