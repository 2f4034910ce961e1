//! A model that calls a tool and then answers: a loop of two steps.
//!
//! ```text
//! cargo run -p examples --bin hello
//! ```
//!
//! The replies of the model come from a script, so no network is needed.

#![deny(clippy::wildcard_enum_match_arm)]

use std::sync::Arc;

use harness::llm::scripted::{Scripted, call, say};
use harness::prelude::*;
use serde_json::{Value, json};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = transcript)]
    talk: Transcript,
    answer: Option<String>,
}

#[derive(Context)]
struct Ctx {
    tools: ToolSet,
    #[slot(runtime)]
    model: Arc<dyn Llm>,
}

#[rustfmt::skip]
#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step { Think, Act }

#[rustfmt::skip]
#[derive(Signal, Clone, Copy, Debug)]
enum Next { CallTools, Answer }

async fn think(chat: View<Chat>, cx: Cx<Ctx>) -> StepResult<Chat> {
    let reply = cx.llm(&cx.model).complete(&chat.talk, &cx.tools).await?;
    Ok(Chat::update().answer(reply.text()).talk([reply.into()]))
}

async fn act(chat: View<Chat>, cx: Cx<Ctx>) -> StepResult<Chat> {
    Ok(Chat::update().talk(cx.tools.call_all(chat.talk.open_calls()).await))
}

fn next(chat: &Chat) -> Next {
    if chat.talk.has_open_calls() { Next::CallTools } else { Next::Answer }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let weather = tool("weather", "Reports the weather", async |at: Value| {
        Ok(format!("It rains in {}.", at["city"]))
    });
    let assistant = Harness::<Ctx, Chat>::builder("assistant")
        .provide(Ctx::fixed().tools(ToolSet::builder().with(weather).build()?).build())
        .start(Step::Think)
        .steps(|define, step| match step {
            Step::Think => define.run(think).route(next, |signal| match signal {
                Next::CallTools => to(Step::Act),
                Next::Answer => end(),
            }),
            Step::Act => define.run(act).then(Step::Think),
        })
        .build()?;

    let script = [call("weather", json!({"city": "Bergen"})), say("Take an umbrella.")];
    let slots = Ctx::runtime().model(Arc::new(Scripted::new(script))).build();
    let input = Chat::update().talk([user("What do I need in Bergen?")]);
    let ended = assistant.agent("hello", ()).run(input, slots).await?.ended()?;
    println!("{}", ended.state.answer.unwrap_or_default());
    Ok(())
}
