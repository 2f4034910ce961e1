//! One loop with every adapter: the adapter is changed by one line, in the middle of a session too, and
//! its key is nowhere to be seen.

use crate::wires;
use harness::llm::{Block, Delta, StopReason, Turn, Usage};
use harness::observe::Recorder;
use harness::prelude::*;
use harness::store::{MemoryStore, ReadRequest, SessionStore};
use harness::testing::{Wire, WireServer};
use serde_json::Value;
use std::fmt::Write;
use std::future::IntoFuture;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

#[derive(State, Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Chat {
    #[state(reduce = transcript)]
    talk: Transcript,
    answer: Option<String>,
}

#[derive(Context)]
pub(crate) struct Ctx {
    tools: ToolSet,
    #[slot(runtime)]
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
pub(crate) enum Step {
    Think,
    Act,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    CallTools,
    Answer,
}

pub(crate) fn agent(store: &MemoryStore) -> Agent<Ctx, Chat> {
    let weather = tool("weather", "Reports the weather", async |at: Value| {
        Ok(format!("It rains in {}.", at["city"]))
    });
    let tools = ToolSet::builder().with(weather).build().unwrap();
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
        .unwrap()
        .agent("assistant", ())
        .store(store.clone())
}

/// A call of a tool, and then an answer.
pub(crate) fn replies(answer: &str) -> [Vec<Delta>; 2] {
    let call = vec![
        Delta::CallStart { index: 0, id: "call_1".into(), name: "weather".into() },
        Delta::CallArguments { index: 0, fragment: "{\"city\":".into() },
        Delta::CallArguments { index: 0, fragment: "\"Bergen\"}".into() },
        Delta::CallEnd { index: 0 },
        Delta::Usage(Usage::tokens(7, 3)),
        Delta::Stop(StopReason::ToolCalls),
    ];
    let say = vec![
        Delta::Text(answer.into()),
        Delta::Usage(Usage::tokens(9, 4)),
        Delta::Stop(StopReason::End),
    ];
    [call, say]
}

async fn servers() -> Vec<WireServer> {
    let mut servers = Vec::new();
    for (place, wire) in wires::all().into_iter().enumerate() {
        servers.push(WireServer::start(wire, replies(&format!("answer {place}"))).await.unwrap());
    }
    servers
}

#[tokio::test]
async fn the_adapter_changes_in_the_middle_of_a_session() {
    let store = MemoryStore::new();
    let agent = agent(&store);
    // A turn as a session has it that every vendor has replied in: each with a block of its own.
    let mark = |wire: &dyn Wire, model: &dyn Llm| {
        format!("opaque-of-{}-of-{}", wire.protocol(), model.id().provider())
    };
    let (wires, servers) = (wires::all(), servers().await);
    let mut marks = Vec::new();
    let mut blocks = Vec::new();
    for (wire, server) in wires.iter().zip(&servers) {
        let model = server.adapter("key");
        let mark = mark(wire.as_ref(), &model);
        if let Some(data) = wire.opaque(&mark) {
            let (protocol, model) = (wire.protocol().into(), model.id());
            blocks.push(Block::Opaque { protocol, model, data });
            blocks.push(" and ".into());
        }
        marks.push(mark);
    }
    let turn = Turn::new([Block::Text("so".into())].into_iter().chain(blocks));
    let mut input = Chat::update().talk([user("hi"), turn.into(), user("What of Bergen?")]);
    for (place, server) in servers.iter().enumerate() {
        let slots = Ctx::runtime().model(server.adapter("key")).build();
        let run = agent.run(input, slots).session("s").await.unwrap();
        let ended = run.ended().unwrap();
        assert_eq!(ended.state.answer.as_deref(), Some(&*format!("answer {place}")));
        let seen = server.seen();
        assert_eq!(seen.len(), 2, "a request was rejected");
        for request in seen {
            let body = request.body.to_string();
            for (other, mark) in marks.iter().enumerate() {
                let own = other == place && wires[place].opaque(mark).is_some();
                assert_eq!(body.contains(mark.as_str()), own, "{mark} in {body}");
            }
        }
        input = Chat::update().talk([user("And now?")]);
    }
}

#[tokio::test]
async fn a_dropped_run_closes_its_connection_within_a_second() {
    for wire in wires::all() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let model = wire.adapter(&format!("http://{}", listener.local_addr().unwrap()), "key");
        let (arrived, arrival) = oneshot::channel();
        let closed = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut read = [0; 1024];
            stream.read_exact(&mut read[..1]).await.unwrap();
            arrived.send(()).unwrap();
            while stream.read(&mut read).await.is_ok_and(|count| count > 0) {}
        });
        let agent = agent(&MemoryStore::new());
        let slots = Ctx::runtime().model(model).build();
        let input = Chat::update().talk([user("What of Bergen?")]);
        tokio::select! {
            outcome = agent.run(input, slots).into_future() => panic!("{outcome:?}"),
            arrived = arrival => arrived.unwrap(),
        }
        let closed = tokio::time::timeout(Duration::from_secs(1), closed).await;
        closed.unwrap_or_else(|_| panic!("{} keeps its connection", wire.protocol())).unwrap();
    }
}

const KEY: &str = "sk-canary-4711";

/// Everything that is logged, by either of the two ways.
static LOGGED: Mutex<String> = Mutex::new(String::new());

fn logged(line: std::fmt::Arguments<'_>) {
    let mut all = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    all.write_fmt(line).unwrap();
    all.push('\n');
}

struct Log;

impl log::Log for Log {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        logged(format_args!("{} {}", record.target(), record.args()));
    }

    fn flush(&self) {}
}

struct Trace;

struct Fields;

impl tracing::field::Visit for Fields {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        logged(format_args!("{field}={value:?}"));
    }
}

impl tracing::Subscriber for Trace {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        logged(format_args!("span {}", span.metadata().name()));
        span.record(&mut Fields);
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>) {
        values.record(&mut Fields);
    }

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut Fields);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

/// The events, the log and the error of a run that answers, and of one that fails.
#[tokio::test]
async fn a_key_is_in_no_log_no_event_no_error_and_no_session() {
    log::set_logger(&Log).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    let _guard = tracing::subscriber::set_default(Trace);
    for server in servers().await {
        let store = MemoryStore::new();
        let seen = Recorder::default().with_tokens();
        let agent = agent(&store).observe(seen.clone());
        let run = async |session: &str| {
            let slots = Ctx::runtime().model(server.adapter(KEY)).build();
            let input = Chat::update().talk([user("What of Bergen?")]);
            agent.run(input, slots).session(session).await.unwrap()
        };
        let mut shown = String::new();
        for session in ["answers", "fails"] {
            // The second has no reply: the server closes the connection.
            let outcome = run(session).await;
            write!(shown, "{outcome:?}").unwrap();
            assert_eq!(outcome.ended().is_ok(), session == "answers");
            let id = harness::SessionId::new(session).unwrap();
            let read = ReadRequest::from_snapshot().limit(u64::MAX);
            let page = store.read(&id, read).await.unwrap().unwrap();
            assert!(!page.entries.is_empty());
            for entry in page.entries {
                shown.push_str(&String::from_utf8_lossy(&entry.bytes));
            }
        }
        for event in seen.events() {
            write!(shown, "{event:?} {}", serde_json::to_string(&event).unwrap()).unwrap();
        }
        let sent = server.seen().into_iter().flat_map(|request| request.headers);
        assert!(sent.map(|(_, value)| value).any(|value| value.contains(KEY)));
        assert!(shown.contains("Bergen"));
        assert!(!shown.contains("canary"), "{shown}");
    }
    let logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(logged.contains("hyper") || logged.contains("reqwest"), "nothing was logged");
    assert!(logged.contains("span "), "no span was recorded");
    assert!(!logged.contains("canary"), "{logged}");
}
