//! Prebuilt loops. They use only what any program can use.
//!
//! [`tool_loop`] is the loop of an agent with tools: a model that thinks, rulings on its calls, and
//! calls that are made at most once where they must be. Ten lines make an agent:
//!
//! ```
//! use harness::llm::ToolError;
//! use harness::loops::{Conversation, tool_loop};
//! use harness::prelude::*;
//! # use harness::llm::scripted::{Scripted, call, say};
//! # use serde_json::json;
//!
//! /// Reports the weather in a city.
//! #[tool(read)]
//! async fn weather(city: String) -> Result<String, ToolError> {
//!     Ok(format!("it rains in {city}"))
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! # let model = Scripted::new([call("weather", json!({"city": "Bergen"})), say("Take an umbrella.")]);
//! let tools = ToolSet::builder().with(weather).build()?;
//! let agent = tool_loop::<Conversation>(model, tools).build()?.agent("assistant", ());
//!
//! let ended = agent.run(Conversation::say("What do I need in Bergen?"), ()).await?.ended()?;
//! assert_eq!(ended.state.answer().as_deref(), Some("Take an umbrella."));
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! A person is asked before a tool acts on the world outside, unless a policy says otherwise: see
//! [`approval`](harness::approval).

#[cfg(feature = "code")]
mod code;
mod state;
mod tool;

#[cfg(feature = "code")]
pub use code::{Assigned, Assignment, CodeLoop, CodeStep, Coding, Part, Unrepaired, code_loop};
pub use state::{Conversation, Converses, ToolUse};
pub use tool::{Step, ToolLoop, tool_loop};
