//! How the servers of the vendors speak, written to their published references.

#[cfg(feature = "anthropic")]
pub(crate) mod anthropic;
#[cfg(feature = "gemini")]
pub(crate) mod gemini;
#[cfg(feature = "ollama")]
pub(crate) mod ollama;
#[cfg(any(feature = "openai-chat", feature = "openai-responses"))]
mod openai;
#[cfg(feature = "openai-chat")]
pub(crate) mod openai_chat;
#[cfg(feature = "openai-responses")]
pub(crate) mod openai_responses;

use harness::testing::Wire;
use serde_json::Value;

/// The wire of every adapter.
pub(crate) fn all() -> Vec<Box<dyn Wire>> {
    vec![
        #[cfg(feature = "anthropic")]
        Box::new(anthropic::Messages),
        #[cfg(feature = "openai-chat")]
        Box::new(openai_chat::Completions { compatible: false }),
        #[cfg(feature = "openai-chat")]
        Box::new(openai_chat::Completions { compatible: true }),
        #[cfg(feature = "openai-responses")]
        Box::new(openai_responses::Responses),
        #[cfg(feature = "gemini")]
        Box::new(gemini::GenerateContent("gemini-3-pro-preview")),
        #[cfg(feature = "ollama")]
        Box::new(ollama::Chat),
    ]
}

/// A server-sent event without a name.
#[allow(dead_code)]
pub(crate) fn data(json: &Value) -> String {
    format!("data: {json}\n\n")
}
