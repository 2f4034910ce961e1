//! Lists, calls and results of one server.

use crate::process::{Place, WAYS, Way};
use crate::{call, text};
use harness::llm::{EffectClass, Image, Part, Tool, ToolFailure, ToolName, ToolOutcome, ToolSet};
use harness::observe::trace;
use harness_providers::mcp::{Client, Limits, Progress};
use serde_json::{Map, json};
use std::sync::{Arc, Mutex};

#[tokio::test]
async fn one_client_lists_calls_and_reports() {
    for way in WAYS {
        let place = Place::new(way).await;
        let seen = Arc::<Mutex<Vec<Progress>>>::default();
        let kept = Arc::clone(&seen);
        let server = place
            .server("t")
            .limits(Limits::default().result_bytes(1000))
            .on_progress(move |progress| kept.lock().unwrap().push(progress.clone()))
            .meta(|| Map::from_iter([("traceparent".to_owned(), json!("00-1-2-01"))]));
        let client = Client::connect([server]).await.unwrap();
        tools_of_all_pages_are_listed_under_legal_names(&client).await;
        results_of_every_kind_are_content(&client.tools()).await;
        progress_is_reported_with_its_call(&client.tools(), &seen).await;
        a_call_carries_the_fields_of_the_caller(&client.tools(), way).await;
        client.close().await;
    }
}

async fn tools_of_all_pages_are_listed_under_legal_names(client: &Client) {
    let tools = client.tools();
    assert_eq!(tools.specs().len(), 17);
    let echo = &tools.specs()[0];
    assert_eq!((echo.name.as_str(), &*echo.description), ("t_echo", "Runs echo."));
    assert_eq!(
        echo.input_schema,
        json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})
    );
    for name in ["files/read all", &"n".repeat(100)] {
        let listed = client.list();
        let tool = listed.iter().find(|tool| tool.name() == name).unwrap();
        assert_eq!(tool.server(), "t");
        let known = tool.spec().name;
        assert!(known.as_str().len() <= 64 && known.as_str() != name, "{known}");
        assert_eq!(text(&call(&tools, known.as_str(), json!({})).await), format!("called {name}"));
        assert_eq!(client.find(&known).unwrap().name(), name);
    }
    assert!(client.find(&ToolName::from("echo")).is_none());
    let skipped = client.skipped();
    assert_eq!(skipped.len(), 1);
    assert_eq!((&*skipped[0].server, &*skipped[0].tool), ("t", "bad"));
    assert!(skipped[0].why.contains("not legal at vendors"), "{skipped:?}");
}

async fn results_of_every_kind_are_content(tools: &ToolSet) {
    let said = call(tools, "t_echo", json!({"text": "zażółć \u{0}\n"})).await;
    assert_eq!(text(&said), "zażółć \u{0}\n");
    let ToolOutcome::Ok(kinds) = call(tools, "t_kinds", json!({})).await else {
        panic!("the tool has a result");
    };
    let image = Image::Inline { media_type: "image/png".into(), base64: "cG5n".into() };
    let link = "resource `a`: file:///a";
    let expected: [Part; 4] = ["a text".into(), image.into(), link.into(), json!({"n": 1}).into()];
    assert_eq!(kinds[..], expected);
    let failed = |text: &str| ToolOutcome::failed(ToolFailure::Errored, text);
    assert_eq!(call(tools, "t_fail", json!({})).await, failed("no paper"));
    assert_eq!(call(tools, "t_reject", json!({})).await, failed("the arguments are wrong"));
    let big = text(&call(tools, "t_big", json!({"bytes": 5000})).await);
    assert!(big.starts_with(&"x".repeat(1000)), "{big}");
    assert!(big.ends_with("x[cut: the result has 5000 bytes, and 1000 are allowed]"), "{big}");
    // Arguments that are no object never leave.
    let bad = call(tools, "t_echo", json!([1])).await;
    assert!(matches!(bad, ToolOutcome::Failed { kind: ToolFailure::BadArguments, .. }), "{bad:?}");
}

async fn progress_is_reported_with_its_call(tools: &ToolSet, seen: &Mutex<Vec<Progress>>) {
    assert_eq!(text(&call(tools, "t_work", json!({})).await), "done");
    let seen = seen.lock().unwrap().clone();
    let steps: Vec<_> =
        seen.iter().map(|seen| (seen.progress, seen.total, seen.message.as_deref())).collect();
    let expected = [(1.0, "step 1"), (2.0, "step 2"), (3.0, "step 3")];
    assert_eq!(steps, expected.map(|(at, text)| (at, Some(3.0), Some(text))));
    let of = &seen[0];
    assert_eq!((&*of.server, &*of.tool, of.call.as_str()), ("t", "work", "call-1"));
}

async fn a_call_carries_the_fields_of_the_caller(tools: &ToolSet, way: Way) {
    let about = text(&call(tools, "t_trace", json!({})).await);
    let old = matches!(way, Way::StdioInitialize | Way::HttpInitialize);
    let version = if old { "2025-11-25" } else { "2026-07-28" };
    assert_eq!(about, format!("{version} 00-1-2-01"));
}

/// The fields of the caller come first.
#[tokio::test]
async fn a_call_carries_the_context_of_its_span() {
    use tracing::Instrument as _;
    use tracing_subscriber::layer::SubscriberExt as _;

    let place = Place::new(Way::Stdio).await;
    let given =
        place.server("t").meta(|| Map::from_iter([("traceparent".to_owned(), json!("00-1-2-01"))]));
    let (_telemetry, layer) = harness_otel::Telemetry::builder("test").layer().unwrap();
    let _subscribed = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    for (server, own) in [(place.server("t"), true), (given, false)] {
        let client = Client::connect([server]).await.unwrap();
        let calling = async {
            let context = trace::current().remove("traceparent").unwrap();
            (text(&call(&client.tools(), "t_trace", json!({})).await), context)
        };
        let (about, context) = calling.instrument(tracing::info_span!("calling")).await;
        let expected = if own { &*context } else { "00-1-2-01" };
        assert!(about.ends_with(expected), "{about}");
        client.close().await;
    }
}

#[tokio::test]
async fn hints_count_as_they_are_trusted_and_the_user_decides() {
    let place = Place::new(Way::Stdio).await;
    let effects = async |server| {
        let client = Client::connect([server]).await.unwrap();
        let tools = client.tools();
        client.close().await;
        ["t_echo", "t_note", "t_grow"].map(|name| tools.spec(&name.into()).unwrap().effect)
    };
    use EffectClass::{Destructive, External, Read, Write};
    assert_eq!(effects(place.server("t")).await, [External, External, Destructive]);
    assert_eq!(effects(place.server("t").trust_hints()).await, [Read, External, Destructive]);
    let decided = place.server("t").effect("note", Write).effect("grow", External);
    assert_eq!(effects(decided).await, [External, Write, External]);
}

#[tokio::test]
async fn a_change_of_the_list_makes_another_set() {
    for way in WAYS {
        let place = Place::new(way).await;
        let client = place.client().await;
        let mut changes = client.changes();
        let before = client.tools();
        assert_eq!(text(&call(&before, "t_grow", json!({})).await), "grown");
        let after = changes.next().await.unwrap();
        let new = "t_extra1".into();
        assert!(before.spec(&new).is_none() && after.spec(&new).is_some(), "{way:?}");
        assert!(client.tools().spec(&new).is_some());
        assert_eq!(text(&call(&after, "t_extra1", json!({})).await), "called extra1");
        // A second change is seen as well, and the older set can still be called.
        call(&before, "t_grow", json!({})).await;
        assert!(changes.next().await.unwrap().spec(&"t_extra2".into()).is_some());
        drop(client);
        assert!(changes.next().await.is_none());
    }
}
