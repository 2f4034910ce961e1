//! What arrives in another process.

use std::path::Path;

use harness::llm::scripted::say;
use harness::llm::{Scripted, ToolSet, Usage};
use harness::observe::{EventKind, Recorder};
use harness::prelude::*;
use harness_otel::{Builder, SetupError, Telemetry};
use harness_store::FileStore;
use serde_json::{Value, json};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::receiver::{Protocol, Receiver, tree};
use crate::rig::{Doc, asking, line, only};

/// A part of it looks encoded.
const TOKEN: &str = "Bearer a%20b,c=d";
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
    let builder = builder.header("Authorization", TOKEN);
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
        assert!(requests.iter().all(|it| it["token"] == TOKEN), "{requests:?}");
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
const SESSION: &str = "HARNESS_OTEL_SESSION";
const QUESTION: &str = "HARNESS_OTEL_QUESTION";
const ENDPOINT: &str = "HARNESS_OTEL_ENDPOINT";

/// The second process of the tests below.
#[tokio::test]
async fn answers_in_another_process() {
    let (Ok(store), Ok(endpoint)) = (std::env::var(STORE), std::env::var(ENDPOINT)) else { return };
    let (telemetry, _subscribed) = traced(Protocol::Http, endpoint);
    let agent = asking().store(FileStore::open(store).await.unwrap());
    let question = harness::InterruptId::new(std::env::var(QUESTION).unwrap());
    let answers = Answers::json(question, true.into());
    let session = std::env::var(SESSION).unwrap();
    agent.resume(session.as_str(), answers, ()).await.unwrap().ended().unwrap();
    telemetry.shutdown().await.unwrap();
}

/// Runs an agent until it asks, answers in another process, and returns the spans of both.
async fn in_two_processes(agent: Agent<(), Doc>) -> String {
    let receiver = Receiver::start([0, 0]);
    let folder = tempfile::tempdir().unwrap();
    let (telemetry, _subscribed) = traced(Protocol::Http, receiver.endpoint(Protocol::Http));
    let seen = Recorder::default();
    let agent = agent.store(FileStore::open(folder.path()).await.unwrap()).observe(seen.clone());
    let settled = agent.run(Doc::update(), ()).session("s").await.unwrap();
    assert!(settled.ended().is_err());
    let events = seen.events();
    let asked = events.iter().find_map(|event| match &event.kind {
        EventKind::Asked { interrupt } => {
            Some((event.session.to_string(), interrupt.id.to_string()))
        }
        _ => None,
    });
    let (session, question) = asked.unwrap();
    drop((agent, seen));
    telemetry.shutdown().await.unwrap();
    let second = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "wire::answers_in_another_process"])
        .env(SESSION, session)
        .env(QUESTION, question)
        .env(STORE, folder.path())
        .env(ENDPOINT, receiver.endpoint(Protocol::Http))
        .output()
        .unwrap();
    assert!(second.status.success(), "{second:?}");
    let requests = receiver.end();
    let spans: Vec<Value> =
        requests.iter().filter_map(|it| it["spans"].as_array()).flatten().cloned().collect();
    tree(&spans)
}

#[tokio::test]
async fn a_run_in_another_process_links_to_the_run_before() {
    insta::assert_snapshot!(in_two_processes(asking()).await);
}

/// The other process does not know the parent.
#[tokio::test]
async fn a_child_in_another_process_links_to_the_step_that_called_it() {
    let child = asking();
    let parent = only("parent", move |_, cx: Cx<()>| {
        let child = child.clone();
        async move {
            cx.call(&child, Doc::update(), ()).await?;
            line("parent")
        }
    });
    insta::assert_snapshot!(in_two_processes(parent).await);
}

/// The process of the test below, which trusts the certificate of the receiver, or does not.
#[tokio::test]
async fn exports_with_tls() {
    let (Ok(http), Ok(grpc)) =
        (std::env::var("HARNESS_OTEL_HTTPS"), std::env::var("HARNESS_OTEL_GRPCS"))
    else {
        return;
    };
    for (protocol, endpoint) in [(Protocol::Http, http), (Protocol::Grpc, grpc)] {
        let (telemetry, _subscribed) = traced(protocol, endpoint);
        run(only("bot", |_, _| async move { line("done") })).await;
        println!("{protocol:?} {}", telemetry.shutdown().await.is_ok());
    }
}

#[test]
fn a_receiver_with_tls_is_trusted_if_the_system_trusts_its_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("own.pem"), folder.path().join("own.key"));
    make_certificate(&certificate, &key);
    let (other, its_key) = (folder.path().join("other.pem"), folder.path().join("other.key"));
    make_certificate(&other, &its_key);
    for (trusted, exported) in [(&certificate, true), (&other, false)] {
        let receiver = Receiver::secure(&certificate, &key);
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "wire::exports_with_tls"])
            .env("SSL_CERT_FILE", trusted)
            .env("HARNESS_OTEL_HTTPS", receiver.endpoint(Protocol::Http))
            .env("HARNESS_OTEL_GRPCS", receiver.endpoint(Protocol::Grpc))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{output:?}");
        assert!(said.contains(&format!("Http {exported}\n")), "{output:?}");
        assert!(said.contains(&format!("Grpc {exported}\n")), "{output:?}");
        let requests = receiver.end();
        let protocols = requests.iter().filter(|it| it["spans"].is_array());
        let protocols: Vec<_> = protocols.map(|it| it["protocol"].as_str().unwrap()).collect();
        assert_eq!(protocols, if exported { vec!["http", "grpc"] } else { vec![] });
    }
}

/// One that its server has signed itself.
fn make_certificate(certificate: &Path, key: &Path) {
    let made = std::process::Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(key)
        .arg("-out")
        .arg(certificate)
        .output()
        .expect("`openssl` makes the certificate");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

const ALONE: &str = "HARNESS_OTEL_ALONE";

/// In a process of its own, because it installs what all of the process has.
#[tokio::test]
async fn installs_it_alone() {
    if std::env::var_os(ALONE).is_none() {
        return;
    }
    // Nothing listens there.
    let telemetry = Telemetry::builder("alone").http("http://127.0.0.1:1").install().unwrap();
    assert!(matches!(Telemetry::builder("alone").install(), Err(SetupError::Subscriber)));
    let agent = only("bot", |_, _| async { line("done") });
    agent.run(Doc::update(), ()).await.unwrap().ended().unwrap();
    // It fails as the export does.
    let _ = telemetry.shutdown().await;
}

#[test]
fn a_program_without_another_subscriber_sees_what_is_lost() {
    let alone = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "wire::installs_it_alone"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&alone.stderr);
    assert!(alone.status.success(), "{said}");
    let warned =
        said.lines().filter(|line| line.starts_with("harness_otel: failed to export spans"));
    assert_eq!(warned.count(), 1, "{said}");
}
