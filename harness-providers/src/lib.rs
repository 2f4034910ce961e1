//! LLM adapters for [`harness`](https://docs.rs/harness): models that speak the protocols of vendors.
//!
//! Each adapter is an [`Llm`](harness::llm::Llm), directly on HTTP, with one shared transport.
//!
//! ```no_run
//! use harness::llm::{CallCx, Llm, Request, Transcript, user};
//! use harness_providers::Anthropic;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let model = Anthropic::from_env("claude-sonnet-4-5")?;
//! let talk = Transcript::from_iter([user("hello")]);
//! let reply = model.complete(Request::new(talk.sealed()?), &CallCx::detached()).await?;
//! println!("{}", reply.text().unwrap_or_default());
//! # Ok(())
//! # }
//! ```
//!
//! # What every adapter keeps to
//!
//! - A setting that the protocol cannot express fails as `Unsupported`, and nothing is sent.
//! - A reply without the protocol's terminal event fails as `Stream`.
//! - [`Options`](harness::llm::Options) of the protocol are merged into the body: objects by field, lists
//!   are appended to, and everything else is replaced.
//! - Errors hold no request, no header and no key. [`Secret`] shows nothing.
//! - Each exchange is charged once, also if it fails or is dropped, with its cost if [`Prices`] has the
//!   model.
//! - Time is limited by phase, see [`Timeouts`], and by the deadline of the call. A reply has at most
//!   16 MiB.
//! - No redirect is followed, and no proxy of the environment is used unless
//!   [the client](reqwest::Client) has one.
//!
//! # Models made of models
//!
//! The module [`wrap`] has models that contain models: another model after an error, one by the request,
//! a budget, a cache, rate limits, and recordings for tests without a network.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `anthropic` | yes | [`Anthropic`]: the Messages API |
//! | `gemini` | no | `Gemini`: the Gemini API of Google |
//! | `ollama` | no | `Ollama`: the chat API of Ollama |
//! | `openai-chat` | no | `OpenAiChat`: the Chat Completions API, and every server compatible with it |
//! | `openai-responses` | no | `OpenAiResponses`: the Responses API |
//! | `http-fetch` | no | `HttpFetch`: a tool that fetches pages, from public addresses only |
//! | `mcp` | no | `mcp`: tools of MCP servers, over stdio and streamable HTTP |

// Which of the parts below adapters use depends on the adapters that are built. This one uses all.
#![cfg_attr(not(feature = "anthropic"), allow(dead_code, unused_imports, unused_macros))]

#[cfg(feature = "anthropic")]
mod anthropic;
mod bill;
mod decimal;
mod endpoint;
mod env;
mod exchange;
mod failure;
#[cfg(feature = "http-fetch")]
mod fetch;
#[cfg(feature = "gemini")]
mod gemini;
#[cfg(any(feature = "gemini", feature = "ollama"))]
mod made_ids;
#[cfg(feature = "mcp")]
pub mod mcp;
mod merge;
#[cfg(feature = "ollama")]
mod ndjson;
#[cfg(feature = "ollama")]
mod ollama;
#[cfg(any(feature = "openai-chat", feature = "openai-responses"))]
mod openai;
mod price;
mod retry_after;
mod secret;
mod sse;
mod transport;
pub mod wrap;

#[cfg(feature = "anthropic")]
pub use anthropic::Anthropic;
pub use env::{EnvError, from_env};
#[cfg(feature = "http-fetch")]
pub use fetch::HttpFetch;
#[cfg(feature = "gemini")]
pub use gemini::Gemini;
#[cfg(feature = "ollama")]
pub use ollama::Ollama;
#[cfg(feature = "openai-chat")]
pub use openai::OpenAiChat;
#[cfg(feature = "openai-responses")]
pub use openai::OpenAiResponses;
pub use price::{Price, Prices};
pub use secret::Secret;
pub use transport::Timeouts;

/// The HTTP client that adapters take.
pub use reqwest;
