//! What a loop relies on beside calls of tools, in one unchanged loop with every adapter: typed values,
//! images, tokens as they arrive, a failed call that is repeated after the wait that the vendor asks for,
//! and a budget in money.

use crate::loops::{self, Chat};
use crate::server::{Answer, Server};
use crate::wires;
use harness::Outcome;
use harness::llm::{
    Accumulator, CallCx, Delta, Image, LlmErrorKind, ModelId, Part, Reply, Request, StopReason,
    Usage,
};
use harness::observe::{EventKind, Recorder};
use harness::prelude::*;
use harness::store::MemoryStore;
use harness::testing::Wire;
use harness_providers::{Anthropic, Gemini, Ollama, OpenAiChat, OpenAiResponses, Price, Prices};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Seen {
    #[state(reduce = append)]
    animals: Vec<String>,
}

#[derive(Context)]
struct Ctx {
    #[slot(runtime)]
    model: Arc<dyn Llm>,
}

/// Its number has bounds, which not every protocol can express in the schema of a reply.
#[derive(Deserialize, harness::llm::schemars::JsonSchema)]
#[schemars(crate = "harness::llm::schemars")]
struct Animal {
    name_mark: String,
    legs: u8,
}

async fn look(_: View<Seen>, cx: Cx<Ctx>) -> StepResult<Seen> {
    let image = Image::Inline { media_type: "image/png".into(), base64: "bWFyaw==".into() };
    let talk = Transcript::from_iter([user(vec![Part::from("What is it?"), image.into()])]);
    let animal: Animal = cx.llm(&cx.model).extract(&talk).await?;
    Ok(Seen::update().animals([format!("{} {}", animal.name_mark, animal.legs)]))
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Look,
}

fn agent(seen: &Recorder) -> Agent<Ctx, Seen> {
    Harness::<Ctx, Seen>::builder("looks")
        .start(Step::Look)
        .steps(|define, step| match step {
            Step::Look => define.run(look).retry(Retry::every(Duration::ZERO)).end(),
        })
        .build()
        .unwrap()
        .agent("looks", ())
        .observe(seen.clone())
}

/// The adapter of a wire, with a price: one dollar a million tokens of input, two of output.
fn priced(wire: &dyn Wire, url: &str) -> Arc<dyn Llm> {
    let id = wire.adapter(url, "key").id();
    let name = id.model();
    let prices = Prices::new().with(name, Price::new(1.0, 2.0));
    match (wire.protocol(), id.provider()) {
        ("anthropic-messages", _) => {
            Arc::new(Anthropic::new(name, "key").base_url(url).prices(prices))
        }
        ("openai-chat", "openai") => {
            Arc::new(OpenAiChat::new(name, "key").base_url(url).prices(prices))
        }
        ("openai-chat", _) => Arc::new(OpenAiChat::compatible(name, url).key("key").prices(prices)),
        ("openai-responses", _) => {
            Arc::new(OpenAiResponses::new(name, "key").base_url(url).prices(prices))
        }
        ("gemini-generate-content", _) => {
            Arc::new(Gemini::new(name, "key").base_url(url).prices(prices))
        }
        ("ollama-chat", _) => Arc::new(Ollama::new(name).key("key").base_url(url).prices(prices)),
        other => panic!("{other:?} has no adapter here"),
    }
}

fn said(text: &str) -> Vec<Delta> {
    let parts = text.split_inclusive(' ').map(|part| Delta::Text(part.into()));
    parts.chain([Delta::Usage(Usage::tokens(7, 3)), Delta::Stop(StopReason::End)]).collect()
}

fn reply(parts: &[Delta]) -> Reply {
    let mut folded = Accumulator::new(ModelId::new("p", "m"));
    parts.iter().for_each(|part| folded.push(part.clone()).unwrap());
    folded.finish().unwrap()
}

fn answer(wire: &dyn Wire, parts: &[Delta], streams: bool) -> Answer {
    match streams {
        true => Answer::events(wire.frames(parts)),
        false => Answer::json(200, &serde_json::from_str(&wire.whole(&reply(parts))).unwrap()),
    }
}

fn limited(wire: &dyn Wire) -> Answer {
    let kind = LlmErrorKind::RateLimited { retry_after: None };
    let (status, body) = wire.error(kind, "no").unwrap_or((429, "{}".into()));
    Answer::json(status, &serde_json::from_str(&body).unwrap()).header("retry-after-ms: 20")
}

#[tokio::test]
async fn a_value_of_an_image_arrives_after_the_wait_that_is_asked_for() {
    const TEXT: &str = r#"{"name_mark": "ant", "legs": 6}"#;
    for wire in wires::all() {
        for streams in [false, true] {
            let what = format!("{}, streams: {streams}", wire.protocol());
            let said = said(TEXT);
            let answers = [limited(&*wire), answer(&*wire, &said, streams)];
            let server = Server::start(VecDeque::from(answers)).await;
            let mut seen = Recorder::default();
            if streams {
                seen = seen.with_tokens();
            }
            let slots = Ctx::runtime().model(priced(&*wire, &server.url())).build();
            let run = agent(&seen).run(Seen::update(), slots).await.unwrap();
            let ended = run.ended().unwrap();
            assert_eq!(ended.state.animals, ["ant 6"], "{what}");
            assert_eq!(ended.spent.cost_micros, Some(13), "{what}");
            let requests = server.seen();
            assert_eq!(requests.len(), 2, "{what}");
            for (_, body) in requests {
                let body = body.to_string();
                assert!(body.contains("bWFyaw==") && body.contains("name_mark"), "{what}: {body}");
            }
            let (mut waits, mut heard) = (Vec::new(), String::new());
            for event in seen.events() {
                match event.kind {
                    EventKind::Retrying { after_ms, .. } => waits.push(after_ms),
                    EventKind::Token { delta: Delta::Text(text), .. } => heard.push_str(&text),
                    _ => {}
                }
            }
            assert_eq!(waits, [20], "{what}");
            assert_eq!(heard, if streams { TEXT } else { "" }, "{what}");
        }
    }
}

#[tokio::test]
async fn a_budget_in_money_ends_the_turn() {
    for wire in wires::all() {
        let [call, _] = loops::replies("not asked for");
        let server = Server::start(VecDeque::from([answer(&*wire, &call, false)])).await;
        let model = priced(&*wire, &server.url());
        let input = Chat::update().talk([user("What of Bergen?")]);
        let slots = loops::Ctx::runtime().model(model).build();
        let budget = Budget::steps(9).cost_micros(13);
        let run = loops::agent(&MemoryStore::new()).run(input, slots).budget(budget).await.unwrap();
        let Outcome::Exhausted(reached) = run else { panic!("{}: {run:?}", wire.protocol()) };
        assert_eq!(reached.spent.cost_micros, Some(13), "{}", wire.protocol());
        assert_eq!(server.seen().len(), 1, "{}", wire.protocol());
    }
}

/// A server sends more after the terminal event, if only the end of the body.
#[tokio::test]
async fn a_stream_leaves_its_connection_to_the_next_call() {
    for wire in wires::all() {
        let answer = || {
            let mut frames = wire.frames(&loops::replies("hi")[1]);
            // Blank lines, more than are read at once.
            frames.extend(vec!["\n".repeat(4_096); 16]);
            Answer::events(frames)
        };
        let server = Server::start([answer(), answer()].into()).await;
        let model = wire.adapter(&server.url(), "key");
        for _ in 0..2 {
            let talk = Transcript::from_iter([user("hi")]);
            let cx = CallCx::detached().with_listener(|_| {});
            let reply = model.complete(Request::new(talk.sealed().unwrap()), &cx).await.unwrap();
            assert_eq!(reply.text().as_deref(), Some("hi"));
            // The client takes the connection back in a task of its own.
            tokio::task::yield_now().await;
        }
        assert_eq!((server.seen().len(), server.connections()), (2, 1), "{}", wire.protocol());
    }
}
