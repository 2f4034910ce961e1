//! Setting up, sampling, redaction, the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(all(feature = "http", feature = "grpc"))]
use harness_otel::Telemetry;
use harness_otel::{Conventions, Names};
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
#[cfg(all(feature = "http", feature = "grpc"))]
use tracing_subscriber::Registry;

use crate::rig::{Doc, Kept, Traced, line, only};

#[tokio::test]
async fn a_run_that_is_not_sampled_has_no_spans() {
    let traced = Traced::of(|builder| builder.sample(0.0));
    let agent = only("bot", |_, _| async move {
        assert!(tracing::Span::current().metadata().is_none_or(|it| it.name() == "harness.run"));
        line("done")
    });
    agent.run(Doc::update(), ()).await.unwrap().ended().unwrap();
    assert_eq!(traced.tree(), "");
}

#[tokio::test]
async fn text_is_redacted_and_cut() {
    let traced = Traced::of(|builder| {
        builder.names(Names::Newest).redact(|name, text| match name {
            "secret" => None,
            _ => Some(text.replace("canary", "***")),
        })
    });
    let agent = only("bot", |_, _| async move {
        let long = "é".repeat(5_000);
        tracing::info_span!("query", secret = "x", text = "a canary", long).in_scope(|| {});
        line("done")
    });
    agent.run(Doc::update(), ()).await.unwrap().ended().unwrap();
    let spans = traced.spans();
    assert!(spans.iter().any(|span| span.name == "invoke_workflow only"));
    let query = spans.iter().find(|span| span.name == "query").unwrap();
    let texts: Vec<String> = query.attributes.iter().map(|it| it.value.to_string()).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert_eq!(texts[0], "a ***");
    assert_eq!(texts[1], format!("{}…", "é".repeat(2_048)));
}

/// What other crates say in a span of a step: as an event, and as the reason why it has failed.
#[tokio::test]
async fn messages_and_causes_are_redacted_and_cut() {
    #[derive(Debug, thiserror::Error)]
    #[error("the outer canary")]
    struct Outer(#[source] std::io::Error);

    let traced = Traced::of(|builder| {
        builder.redact(|_, text| (text != "omit it").then(|| text.replace("canary", "***")))
    });
    let agent = only("bot", |_, _| async move {
        tracing::info_span!("query").in_scope(|| {
            let error = Outer(std::io::Error::other("the inner canary"));
            let error: &(dyn std::error::Error + 'static) = &error;
            tracing::warn!(cause = error, "a canary says {}", "é".repeat(5_000));
            tracing::info!("omit it");
            tracing::error!(error = "why the canary died");
        });
        line("done")
    });
    agent.run(Doc::update(), ()).await.unwrap().ended().unwrap();
    let spans = traced.spans();
    let query = spans.iter().find(|span| span.name == "query").unwrap();
    let names: Vec<&str> = query.events.iter().map(|event| &*event.name).collect();
    assert!(names[0].starts_with("a *** says é") && names[0].ends_with('…'), "{names:?}");
    assert!(names[0].len() < 4_200, "{}", names[0].len());
    assert_eq!(names[1], "event");
    let said = format!("{query:?}");
    assert!(said.contains("the inner ***") && said.contains("the outer ***"), "{said}");
    assert!(said.contains("why the *** died") && !said.contains("canary"), "{said}");
}

#[derive(Debug)]
struct Down(Arc<AtomicUsize>);

impl SpanExporter for Down {
    async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
        self.0.fetch_add(1, Ordering::SeqCst);
        Err(OTelSdkError::InternalFailure("down".to_owned()))
    }
}

#[tokio::test]
async fn a_receiver_that_is_down_affects_no_run_and_is_reported() {
    let tries = Arc::new(AtomicUsize::new(0));
    let exporter = Down(Arc::clone(&tries));
    let traced = Traced::of(|builder| builder.spans(exporter));
    let agent = only("bot", |_, _| async move { line("done") });
    agent.run(Doc::update(), ()).await.unwrap().ended().unwrap();
    assert!(traced.telemetry.flush().is_err());
    assert!(tries.load(Ordering::SeqCst) > 0);
}

#[tokio::test]
async fn what_is_lost_is_counted() {
    let exporter = Conventions::new(Down(Arc::default()));
    let spans = {
        let traced = Traced::new();
        let agent = only("bot", |_, _| async move { line("done") });
        agent.run(Doc::update(), ()).await.unwrap().ended().unwrap();
        traced.spans()
    };
    assert_eq!(spans.len(), 2);
    assert!(exporter.export(spans.clone()).await.is_err());
    assert!(exporter.export(spans).await.is_err());
    assert_eq!(exporter.lost(), 4);
}

#[tokio::test]
async fn everything_is_exported_when_shutdown_returns() {
    let kept = Kept::default();
    let exporter = kept.clone();
    let traced = Traced::of(|builder| builder.spans(exporter));
    let agent = only("bot", |_, _| async move { line("done") });
    agent.run(Doc::update(), ()).await.unwrap().ended().unwrap();
    traced.telemetry.shutdown().await.unwrap();
    assert_eq!(kept.0.lock().unwrap().len(), 2);
}

/// None of them reaches a receiver.
#[cfg(all(feature = "http", feature = "grpc"))]
#[test]
fn an_address_or_a_token_that_is_none_is_refused() {
    let host = "a URL such as `http://localhost:4318`";
    for (endpoint, expected) in [
        ("", host),
        ("  ", host),
        ("localhost:4318", host),
        ("http://", host),
        ("https://:4318", "a host after `://`"),
        ("ftp://localhost", "a URL that begins with `http://` or `https://`"),
        ("ftp://me:canary@localhost", "a URL that begins with `http://` or `https://`"),
    ] {
        for builder in
            [Telemetry::builder("test").http(endpoint), Telemetry::builder("test").grpc(endpoint)]
        {
            let Err(error) = builder.layer::<Registry>().map(|_| ()) else {
                panic!("`{endpoint}` is taken");
            };
            let error = error.to_string();
            assert!(error.contains(expected) && !error.contains("canary"), "{endpoint}: {error}");
        }
    }
    for (name, value, expected) in [
        ("authorization", "", "a value that is not empty"),
        ("authorization", " ", "a value that is not empty"),
        ("authorization", "canary\n", "a value on one line"),
        ("", "canary", "a name such as"),
        ("a b", "canary", "a name such as"),
    ] {
        let builder = Telemetry::builder("test").http("http://localhost:4318").header(name, value);
        let Err(error) = builder.layer::<Registry>().map(|_| ()) else {
            panic!("`{name}: {value}` is taken");
        };
        let error = error.to_string();
        assert!(error.contains(expected) && !error.contains("canary"), "{error}");
    }
}
