//! The MCP client against processes of a real server, on the official SDK, over both transports and in
//! both versions of the protocol that differ.
//!
//! `HARNESS_MCP_PYTHON` names a Python with the package; `.ci/test` makes one.
#![cfg(feature = "mcp")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod calls;
mod failures;
mod process;
mod several;

use harness::llm::{ToolCall, ToolOutcome, ToolSet};
use serde_json::Value;

/// Calls a tool of a set.
async fn call(tools: &ToolSet, name: &str, arguments: Value) -> ToolOutcome {
    tools.call(&ToolCall::new("call-1", name, arguments.to_string())).await
}

fn text(outcome: &ToolOutcome) -> String {
    assert!(outcome.is_ok(), "{outcome:?}");
    outcome.content().text().unwrap()
}
