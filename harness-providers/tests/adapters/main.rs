//! Each adapter against a server in this process that speaks its vendor's protocol, and rejects what
//! the vendor rejects.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]
#![cfg(any(
    feature = "anthropic",
    feature = "gemini",
    feature = "ollama",
    feature = "openai-chat",
    feature = "openai-responses"
))]

#[cfg(feature = "anthropic")]
mod anthropic;
mod contract;
#[cfg(all(feature = "openai-chat", feature = "openai-responses"))]
mod env;
mod loops;
#[cfg(feature = "anthropic")]
mod server;
#[cfg(all(
    feature = "anthropic",
    feature = "gemini",
    feature = "ollama",
    feature = "openai-chat",
    feature = "openai-responses"
))]
mod swap;
mod wires;
#[cfg(all(feature = "anthropic", feature = "gemini"))]
mod wrap;
#[cfg(all(feature = "openai-chat", feature = "openai-responses"))]
mod wrong;
