//! An agent that uses the tools of an MCP server, which runs in a child process.
//!
//! ```text
//! cargo run -p examples --bin mcp                # starts its own server, `mcp serve`
//! cargo run -p examples --bin mcp -- serve       # only the server, over standard input and output
//! ```
//!
//! The replies of the model come from a script, so no network and no key are needed.

mod notes;

use std::error::Error;
use std::sync::Arc;

use harness::llm::scripted::{Scripted, call, say};
use harness::llm::{EffectClass, Message};
use harness::prelude::*;
use harness_providers::mcp::{Client, Server, Stdio};
use serde_json::json;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = transcript)]
    talk: Transcript,
}

#[derive(Context)]
struct Ctx {
    servers: Client,
    #[slot(runtime)]
    model: Arc<dyn Llm>,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Think,
    Act,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    CallTools,
    Answer,
}

/// Asks for the tools each time, because a server may change them.
async fn think(chat: View<Chat>, cx: Cx<Ctx>) -> StepResult<Chat> {
    let reply = cx.llm(&cx.model).complete(&chat.talk, &cx.servers.tools()).await?;
    Ok(Chat::update().talk([reply.into()]))
}

async fn act(chat: View<Chat>, cx: Cx<Ctx>) -> StepResult<Chat> {
    let tools = cx.servers.tools();
    let outcomes = cx.call_tools(&tools, chat.talk.open_calls()).await?;
    for message in &outcomes {
        if let Message::Outcome { outcome, .. } = message {
            println!("- {}", outcome.content().text().unwrap_or_default());
        }
    }
    Ok(Chat::update().talk(outcomes))
}

fn next(chat: &Chat) -> Next {
    if chat.talk.has_open_calls() { Next::CallTools } else { Next::Answer }
}

fn assistant(servers: Client) -> Result<Harness<Ctx, Chat>, harness::BuildError> {
    Harness::<Ctx, Chat>::builder("assistant")
        .provide(Ctx::fixed().servers(servers).build())
        .start(Step::Think)
        .steps(|define, step| match step {
            Step::Think => define.run(think).route(next, |signal| match signal {
                Next::CallTools => to(Step::Act),
                Next::Answer => end(),
            }),
            Step::Act => define.run(act).then(Step::Think),
        })
        .build()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return notes::serve().await;
    }
    // This program decides what the tools do to the world. What a server says of itself may be wrong.
    let server = Stdio::new(std::env::current_exe()?).arg("serve");
    let server = Server::stdio("notes", server).effect("list", EffectClass::Read);
    let client = Client::connect([server]).await?;
    for spec in client.tools().specs() {
        println!("{} ({}): {}", spec.name, spec.effect, spec.description);
    }

    let script = [
        call("notes_add", json!({"text": "milk"})),
        call("notes_list", json!({})),
        say("Milk is on your list."),
    ];
    let slots = Ctx::runtime().model(Arc::new(Scripted::new(script))).build();
    let input = Chat::update().talk([user("Note that I need milk.")]);
    let agent = assistant(client.clone())?.agent("notes", ());
    let ended = agent.run(input, slots).await?.ended()?;
    println!("{}", ended.state.talk.last_text().unwrap_or_default());
    client.close().await;
    Ok(())
}
