//! Models that are made of adapters.

use crate::server::{Answer, Server};
use harness::llm::{
    CallCx, Llm, LlmErrorKind, Message, Reply, Request, Tally, ToolOutcome, Transcript, user,
};
use harness_providers::wrap::{Budgeted, Fallback, RateLimited, Recorded};
use harness_providers::{Anthropic, Gemini, Price, Prices};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

const KEY: &str = "canary-key";

async fn server(answers: impl IntoIterator<Item = Answer>) -> Server {
    Server::start(answers.into_iter().collect()).await
}

fn gemini(server: &Server) -> Gemini {
    Gemini::new("gemini-3-flash", KEY).base_url(server.url())
}

fn of_gemini(parts: Value) -> Answer {
    Answer::json(
        200,
        &json!({
            "candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 4},
        }),
    )
}

fn failed(status: u16, name: &str, details: Value) -> Answer {
    let error = json!({"code": status, "status": name, "message": "no", "details": details});
    Answer::json(status, &json!({"error": error}))
}

async fn ask(model: &impl Llm, talk: &Transcript) -> Reply {
    let request = Request::new(talk.sealed().unwrap());
    model.complete(request, &CallCx::detached()).await.unwrap()
}

#[tokio::test]
async fn opaque_reasoning_stays_with_its_vendor_when_another_takes_over() {
    let one = server([
        of_gemini(json!([
            {"functionCall": {"name": "t", "args": {}}, "thoughtSignature": "of-gemini"},
        ])),
        failed(503, "UNAVAILABLE", Value::Null),
        of_gemini(json!([{"text": "and again"}])),
    ])
    .await;
    let two = server([Answer::json(
        200,
        &json!({
            "type": "message", "model": "claude-x", "stop_reason": "end_turn",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "of-claude"},
                {"type": "text", "text": "done"},
            ],
            "usage": {"input_tokens": 10, "output_tokens": 4},
        }),
    )])
    .await;
    let claude = Anthropic::new("claude-x", KEY).base_url(two.url());
    let model = Fallback::new(gemini(&one)).or(claude);

    let mut talk = Transcript::from_iter([user("hi")]);
    let reply = ask(&model, &talk).await;
    let call = reply.calls().next().unwrap().id.clone();
    talk.push(reply.into());
    talk.push(Message::Outcome { call, outcome: ToolOutcome::ok("42") });
    let reply = ask(&model, &talk).await;
    assert_eq!((reply.text().as_deref(), reply.model.provider()), (Some("done"), "anthropic"));
    talk.push(reply.into());
    talk.push(user("again?"));
    assert_eq!(ask(&model, &talk).await.text().as_deref(), Some("and again"));

    let bodies = |server: &Server| -> Vec<String> {
        server.seen().iter().map(|(_, body)| body.to_string()).collect()
    };
    let (first, second) = (bodies(&one), bodies(&two));
    assert_eq!((first.len(), second.len()), (3, 1));
    assert!(second[0].contains("tool_result") && !second[0].contains("of-gemini"), "{second:?}");
    assert!(first[2].contains("of-gemini") && !first[2].contains("of-claude"), "{first:?}");
}

#[tokio::test]
async fn a_recording_has_no_key_and_needs_no_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.jsonl");
    let one = server([of_gemini(json!([{"text": "grüß dich"}]))]).await;
    let model = Recorded::record(gemini(&one).header("x-token", KEY), &path).unwrap();
    let talk = Transcript::from_iter([user("hi")]);
    let first = ask(&model, &talk).await;
    assert!(
        one.seen()[0].0.contains(KEY) && !one.seen()[0].0.lines().next().unwrap().contains(KEY)
    );
    assert!(!format!("{model:?}").contains(KEY));
    drop((model, one));
    assert!(!std::fs::read_to_string(&path).unwrap().contains(KEY));
    let replay = Recorded::replay(&path).unwrap();
    assert_eq!(ask(&replay, &talk).await, first);
}

#[tokio::test]
async fn the_wait_of_an_error_holds_back_every_call() {
    let retry = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "60s"}]);
    let one = server([failed(429, "RESOURCE_EXHAUSTED", retry)]).await;
    let model = RateLimited::new(gemini(&one));
    let talk = Transcript::from_iter([user("hi")]);
    let cx = CallCx::detached().with_deadline(Instant::now() + Duration::from_secs(30));
    for seen in [1, 1] {
        let request = Request::new(talk.sealed().unwrap());
        let error = model.complete(request, &cx).await.unwrap_err();
        let LlmErrorKind::RateLimited { retry_after: Some(wait) } = error.kind() else {
            panic!("{error}");
        };
        assert!(wait > Duration::from_secs(29), "{wait:?}");
        assert_eq!(one.seen().len(), seen);
    }
}

#[tokio::test]
async fn a_budget_counts_the_cost_of_an_adapter() {
    let text = || of_gemini(json!([{"text": "x"}]));
    let one = server([text(), text()]).await;
    let prices = Prices::new().with("gemini-3", Price::new(1.0, 10.0));
    let model = Budgeted::new(gemini(&one).prices(prices)).cost_micros(60);
    let talk = Transcript::from_iter([user("hi")]);
    let tally = Arc::new(Tally::default());
    let cx = CallCx::detached().with_meter(tally.clone());
    for _ in 0..2 {
        model.complete(Request::new(talk.sealed().unwrap()), &cx).await.unwrap();
    }
    let request = Request::new(talk.sealed().unwrap());
    assert!(model.complete(request, &cx).await.unwrap_err().is_budget());
    assert_eq!((model.spent().cost_micros, tally.spend().cost_micros), (Some(100), Some(100)));
    assert_eq!(one.seen().len(), 2);
}

#[tokio::test]
async fn a_request_carries_the_context_of_its_span() {
    use tracing::Instrument as _;
    use tracing_subscriber::layer::SubscriberExt as _;

    let answers = || of_gemini(json!([{"text": "yes"}]));
    let server = server([answers(), answers()]).await;
    let model = gemini(&server);
    let talk = Transcript::from_iter([user("well?")]);
    let (_telemetry, layer) = harness_otel::Telemetry::builder("test").layer().unwrap();
    let _subscribed = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    let asking = async {
        ask(&model, &talk).await;
        harness::observe::trace::current().remove("traceparent").unwrap()
    };
    let context = asking.instrument(tracing::info_span!("asking")).await;
    ask(&model, &talk).await;
    let heads: Vec<String> = server.seen().into_iter().map(|(head, _)| head).collect();
    assert!(heads[0].contains(&format!("traceparent: {context}")), "{heads:?}");
    assert!(!heads[1].contains("traceparent"), "{heads:?}");
}
