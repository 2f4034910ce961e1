//! What arrives in another process.

use harness::llm::scripted::say;
use harness::llm::{Scripted, ToolSet, Usage};
use harness::prelude::*;
use harness_otel::{Builder, Telemetry};
use harness_store::FileStore;
use serde_json::{Value, json};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::receiver::{Protocol, Receiver, tree};
use crate::rig::{Doc, asking, line, only};

const BOTH: [Protocol; 2] = [Protocol::Http, Protocol::Grpc];

fn to(builder: Builder, protocol: Protocol, endpoint: String) -> Builder {
    match protocol {
        Protocol::Http => builder.http(endpoint),
        Protocol::Grpc => builder.grpc(endpoint),
    }
}

/// Telemetry of this thread.
fn traced(protocol: Protocol, endpoint: String) -> (Telemetry, DefaultGuard) {
    let builder = Telemetry::builder("wire").attribute("service.version", "1.2");
    let (telemetry, layer) = to(builder, protocol, endpoint).layer().unwrap();
    let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    (telemetry, guard)
}

fn calling() -> Agent<(), Doc> {
    let model = Scripted::new([say("one").usage(Usage::tokens(3, 4))]);
    only("bot", move |_, cx: Cx<()>| {
        let model = model.clone();
        async move {
            let talk = Transcript::from_iter([user("a secret")]);
            cx.llm(&model).complete(&talk, &ToolSet::default()).await?;
            line("done")
        }
    })
}

async fn run(agent: Agent<(), Doc>) {
    agent.run(Doc::update(), ()).await.unwrap().ended().unwrap();
}

#[tokio::test]
async fn a_run_arrives_by_itself_and_the_rest_by_shutdown() {
    for protocol in BOTH {
        let mut receiver = Receiver::start([0, 0]);
        let (telemetry, _subscribed) = traced(protocol, receiver.endpoint(protocol));
        let agent = calling().observe(telemetry.metrics());
        run(agent).await;
        let spans = receiver.wait_for(3);
        assert_eq!(
            tree(&spans),
            "invoke_agent bot (internal) unset \n  step Work (internal) unset \n    \
             chat script (client) unset \n",
            "{protocol:?}"
        );
        let chat = spans.iter().find(|span| span["kind"] == "client").unwrap();
        let attributes = &chat["attributes"];
        assert_eq!(attributes["gen_ai.usage.input_tokens"], 3);
        assert_eq!(attributes["gen_ai.usage.output_tokens"], 4);
        assert_eq!(attributes["gen_ai.response.finish_reasons"], json!(["end"]));

        run(only("last", |_, _| async move { line("done") })).await;
        telemetry.shutdown().await.unwrap();
        let requests = receiver.end();
        assert!(requests.iter().all(|it| it["resource"]["service.name"] == "wire"));
        assert!(requests.iter().all(|it| it["resource"]["service.version"] == "1.2"));
        let name = format!("{protocol:?}").to_lowercase();
        assert!(requests.iter().all(|it| it["protocol"] == name), "{requests:?}");
        let all = |of: &str| -> Vec<Value> {
            requests.iter().filter_map(|it| it[of].as_array()).flatten().cloned().collect()
        };
        assert!(all("spans").iter().any(|it| it["name"] == "invoke_agent last"));
        assert!(all("metrics").contains(&json!("gen_ai.client.token.usage")), "{requests:?}");
        assert!(!json!(requests).to_string().contains("a secret"));
    }
}

#[tokio::test]
async fn a_receiver_that_is_down_and_restarted_loses_what_was_sent_in_between() {
    for protocol in BOTH {
        let receiver = Receiver::start([0, 0]);
        let ports = receiver.ports;
        let (telemetry, _subscribed) = traced(protocol, receiver.endpoint(protocol));
        run(only("before", |_, _| async move { line("done") })).await;
        telemetry.flush().unwrap();
        receiver.kill();

        run(only("between", |_, _| async move { line("done") })).await;
        telemetry.flush().unwrap_err();
        assert_eq!(telemetry.lost(), 2, "{protocol:?}");

        let receiver = Receiver::start(ports);
        run(only("after", |_, _| async move { line("done") })).await;
        telemetry.shutdown().await.unwrap();
        let spans = receiver.end();
        let spans: Vec<Value> =
            spans.iter().filter_map(|it| it["spans"].as_array()).flatten().cloned().collect();
        let expected = "invoke_agent after (internal) unset \n  step Work (internal) unset \n";
        assert_eq!(tree(&spans), expected, "{protocol:?}");
    }
}

#[tokio::test]
async fn a_receiver_that_does_not_answer_delays_no_run() {
    for protocol in BOTH {
        let mut receiver = Receiver::start([0, 0]);
        let (telemetry, _subscribed) = traced(protocol, receiver.endpoint(protocol));
        receiver.order("hold");
        for n in 0..20 {
            run(only(&format!("bot-{n}"), |_, _| async move { line("done") })).await;
        }
        receiver.order("release");
        assert_eq!(receiver.wait_for(40).len(), 40, "{protocol:?}");
        assert_eq!(telemetry.lost(), 0);
        telemetry.shutdown().await.unwrap();
    }
}

const STORE: &str = "HARNESS_OTEL_STORE";
const QUESTION: &str = "HARNESS_OTEL_QUESTION";
const ENDPOINT: &str = "HARNESS_OTEL_ENDPOINT";

/// The second process of the test below.
#[tokio::test]
async fn answers_in_another_process() {
    let (Ok(store), Ok(endpoint)) = (std::env::var(STORE), std::env::var(ENDPOINT)) else { return };
    let (telemetry, _subscribed) = traced(Protocol::Http, endpoint);
    let agent = asking().store(FileStore::open(store).await.unwrap());
    let question = harness::InterruptId::new(std::env::var(QUESTION).unwrap());
    let answers = Answers::json(question, true.into());
    agent.resume("s", answers, ()).await.unwrap().ended().unwrap();
    telemetry.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_run_in_another_process_links_to_the_run_before() {
    let receiver = Receiver::start([0, 0]);
    let folder = tempfile::tempdir().unwrap();
    let (telemetry, _subscribed) = traced(Protocol::Http, receiver.endpoint(Protocol::Http));
    let agent = asking().store(FileStore::open(folder.path()).await.unwrap());
    let asked = agent.run(Doc::update(), ()).session("s").await.unwrap();
    let Outcome::Interrupted(waiting) = asked else { panic!("{asked:?}") };
    let question = waiting.questions[0].id.to_string();
    drop((agent, waiting));
    telemetry.shutdown().await.unwrap();
    let second = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "wire::answers_in_another_process"])
        .env(QUESTION, question)
        .env(STORE, folder.path())
        .env(ENDPOINT, receiver.endpoint(Protocol::Http))
        .output()
        .unwrap();
    assert!(second.status.success(), "{second:?}");
    let requests = receiver.end();
    let spans: Vec<Value> =
        requests.iter().filter_map(|it| it["spans"].as_array()).flatten().cloned().collect();
    insta::assert_snapshot!(tree(&spans));
}
