//! How the servers of the vendors speak, written to their published references.

#[cfg(feature = "anthropic")]
pub(crate) mod anthropic;
#[cfg(any(feature = "openai-chat", feature = "openai-responses"))]
mod openai;
#[cfg(feature = "openai-chat")]
pub(crate) mod openai_chat;
#[cfg(feature = "openai-responses")]
pub(crate) mod openai_responses;

use serde_json::Value;

/// A server-sent event without a name.
#[allow(dead_code)]
pub(crate) fn data(json: &Value) -> String {
    format!("data: {json}\n\n")
}
