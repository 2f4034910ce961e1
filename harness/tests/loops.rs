//! The prebuilt loops use only what any program can use: their sources compile outside of the crate.
#![allow(
    missing_docs,
    dead_code,
    unreachable_pub,
    unused_imports,
    clippy::unwrap_used,
    clippy::panic
)]

#[path = "../src/loops/mod.rs"]
mod loops;

use harness::llm::{Scripted, ToolSet};
use loops::{Conversation, tool_loop};

#[tokio::test]
async fn the_sources_are_a_program_of_their_own() {
    let agent = tool_loop::<Conversation>(Scripted::new(["hello"]), ToolSet::default());
    let agent = agent.build().unwrap().agent("a", ());
    let ended = agent.run(Conversation::say("hi"), ()).await.unwrap().ended().unwrap();
    assert_eq!(ended.state.answer().as_deref(), Some("hello"));
}
