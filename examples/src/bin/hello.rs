//! A model that calls a tool and then answers: a loop of two steps, in five pieces. The README
//! shows the same pieces, one after the other.
//!
//! ```text
//! cargo run -p examples --bin hello
//! ```
//!
//! The replies of the model come from a script, so no network is needed.

use std::sync::Arc;

use harness::llm::scripted::{Scripted, call, say};
use harness::prelude::*;
use serde_json::{Value, json};

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Chat {
    #[state(reduce = transcript)] // an update adds messages, and outcomes to the calls of tools
    talk: Transcript,
    answer: Option<String>, // no reducer: an update replaces it
}

#[derive(Context)]
struct Ctx {
    tools: ToolSet, // fixed: given to the harness
    #[slot(runtime)] // given at each run
    model: Arc<dyn Llm>,
}

async fn think(chat: View<Chat>, cx: Cx<Ctx>) -> StepResult<Chat> {
    let reply = cx.llm(&cx.model).complete(&chat.talk, &cx.tools).await?;
    Ok(Chat::update().answer(reply.text()).talk([reply.into()]))
}

async fn act(chat: View<Chat>, cx: Cx<Ctx>) -> StepResult<Chat> {
    Ok(Chat::update().talk(cx.call_tools(&cx.tools, chat.talk.open_calls()).await?))
}

fn next(chat: &Chat) -> Next {
    if chat.talk.has_open_calls() { Next::CallTools } else { Next::Answer }
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

fn assistant(tools: ToolSet) -> Result<Harness<Ctx, Chat>, harness::BuildError> {
    Harness::<Ctx, Chat>::builder("assistant")
        .provide(Ctx::fixed().tools(tools).build())
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
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let weather = tool("weather", "Reports the weather", async |at: Value| {
        Ok(format!("It rains in {}.", at["city"]))
    });
    let agent = assistant(ToolSet::builder().with(weather).build()?)?.agent("hello", ());

    let script = [call("weather", json!({"city": "Bergen"})), say("Take an umbrella.")];
    let slots = Ctx::runtime().model(Arc::new(Scripted::new(script))).build();
    let input = Chat::update().talk([user("What do I need in Bergen?")]);
    let ended = agent.run(input, slots).await?.ended()?;
    println!("{}", ended.state.answer.unwrap_or_default());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = include_str!("../../../README.md");

    #[test]
    fn the_readme_shows_this_program_and_its_drawing() {
        let tools = ToolSet::builder().build().unwrap();
        let drawing = assistant(tools).unwrap().graph().to_mermaid();
        assert!(README.contains(&format!("```mermaid\n{drawing}```")), "{drawing}");

        let section = README.split("\n## ").find(|part| part.starts_with("The first program"));
        let pieces = section.unwrap().split("```rust,ignore\n").skip(1);
        let pieces: Vec<&str> = pieces.filter_map(|piece| piece.split("```").next()).collect();
        let (_, program) = include_str!("hello.rs").split_once("needed.\n\n").unwrap();
        let (program, _) = program.split_once("\n#[cfg(test)]").unwrap();
        assert_eq!(pieces.join("\n"), program);
    }
}
