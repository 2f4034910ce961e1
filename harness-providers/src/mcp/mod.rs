//! Tools of MCP servers: a client of the Model Context Protocol.
//!
//! A [`Server`] says how one is reached: [`Stdio`] as a child process, [`Http`] behind a URL. A
//! [`Client`] connects to several, and [`Client::tools`] is the set of all their tools.
//!
//! ```no_run
//! use harness::llm::scripted::{call, say};
//! use harness::llm::{CallCx, Llm, Request, Scripted, Transcript, user};
//! use harness_providers::mcp::{Client, Server, Stdio};
//! use serde_json::json;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect([Server::stdio("notes", Stdio::new("notes-server"))]).await?;
//! let model = Scripted::new([call("notes_add", json!({"text": "milk"})), say("noted")]);
//!
//! let mut talk = Transcript::from_iter([user("note: milk")]);
//! loop {
//!     let tools = client.tools();
//!     let reply = model.complete(Request::new(talk.sealed()?).tools(&tools), &CallCx::detached()).await?;
//!     talk.push(reply.into());
//!     if !talk.has_open_calls() {
//!         break;
//!     }
//!     talk.extend(tools.call_all(talk.open_calls()).await);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Names
//!
//! A model knows the tool `add` of the server `notes` as `notes_add`. A name with other characters than
//! vendors accept, or longer than 64, is changed and ends in a hash of the original. So a name depends
//! on its server and its tool only: it is the same in every process, and no other server changes it.
//!
//! # What a call does to the world
//!
//! A server's hints may be wrong, so by default they can only make a call more guarded: a tool is
//! [`External`](harness::llm::EffectClass::External), or `Destructive` if its server says so.
//! [`Server::trust_hints`] believes the others too, and [`Server::effect`] decides for one tool.
//!
//! # When a server fails
//!
//! A connection that has ended is made again by the next call, and the tools are listed again. A call
//! during which it ends is never sent again, and neither is one that takes too long: its outcome is
//! [`InDoubt`](harness::llm::ToolOutcome::InDoubt). Only a call that was provably not sent, and one of a
//! tool that only reads, is sent again, once. An error that the server returns is an outcome that the
//! model reads. A call that is dropped is cancelled at the server.
//!
//! # Limits
//!
//! [`Limits`] bounds waiting and results. No message of a server may have more than 16 MiB. The schemas
//! of tools are made such that every vendor accepts them, and descriptions are cut after 1,024
//! characters; [`Client::skipped`] has the tools for which that is not possible.

mod client;
mod content;
mod effect;
mod error;
mod link;
mod name;
mod progress;
mod remote;
mod schema;
mod server;
mod tool;

pub use client::{Changes, Client};
pub use error::{McpError, McpErrorKind};
pub use progress::Progress;
pub use server::{Http, Limits, Server, Stdio};
pub use tool::{RemoteTool, Skipped};
