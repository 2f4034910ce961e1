//! The adapter against a server in this process that speaks the Messages API, and rejects what the
//! vendor rejects.

use crate::server::{Answer, Server, Step};
use harness::llm::{
    Advice, CallCx, Delta, Llm, LlmError, LlmErrorKind, Message, Reply, Request, StopReason, Tally,
    TimeoutPhase, ToolOutcome, ToolSet, Transcript, tool, user,
};
use harness_providers::{Anthropic, Price, Prices, Secret, Timeouts};
use serde_json::{Value, json};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

const KEY: &str = "sk-ant-canary";

fn reply_json(content: Value, stop: &str) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x",
        "content": content, "stop_reason": stop, "stop_sequence": null,
        "usage": {"input_tokens": 10, "output_tokens": 4},
    })
}

fn event(json: Value) -> String {
    format!("event: {}\ndata: {json}\n\n", json["type"].as_str().unwrap())
}

fn stream_of(text: &str) -> Vec<String> {
    let mut message = reply_json(json!([]), "");
    message["stop_reason"] = Value::Null;
    let mut events = vec![
        event(json!({"type": "message_start", "message": message})),
        event(json!({
            "type": "content_block_start", "index": 0,
            "content_block": {"type": "text", "text": ""},
        })),
    ];
    events.extend(text.split_inclusive(' ').map(|word| {
        let delta = json!({"type": "text_delta", "text": word});
        event(json!({"type": "content_block_delta", "index": 0, "delta": delta}))
    }));
    events.extend([
        event(json!({"type": "content_block_stop", "index": 0})),
        event(json!({
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": null},
            "usage": {"output_tokens": 9},
        })),
        event(json!({"type": "message_stop"})),
    ]);
    events
}

async fn server(answers: impl IntoIterator<Item = Answer>) -> (Server, Anthropic) {
    let answers = answers.into_iter().collect();
    let server = Server::start(answers).await;
    let model = Anthropic::new("claude-x", Secret::new(KEY)).base_url(server.url());
    (server, model)
}

fn talk() -> Transcript {
    Transcript::from_iter([user("hi")])
}

async fn complete(model: &Anthropic, cx: &CallCx) -> Result<Reply, LlmError> {
    let talk = talk();
    model.complete(Request::new(talk.sealed().unwrap()), cx).await
}

/// Calls with a listener, and returns what it heard.
async fn stream(model: &Anthropic) -> (String, Result<Reply, LlmError>) {
    let talk = talk();
    let mut stream = model.stream(Request::new(talk.sealed().unwrap()), &CallCx::detached());
    let mut heard = String::new();
    while let Some(delta) = stream.next().await {
        match delta {
            Ok(Delta::Text(text)) => heard.push_str(&format!("{text}|")),
            Ok(_) => {}
            Err(error) => return (heard, Err(error)),
        }
    }
    (heard, stream.reply().await)
}

/// Everything that an error shows.
fn shown(error: &LlmError) -> String {
    let mut text = format!("{error} {error:?}");
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(&format!(" {source} {source:?}"));
        next = source.source();
    }
    text
}

#[tokio::test]
async fn a_reply_in_one_piece() {
    let content = json!([{"type": "text", "text": "grüß dich 🦀"}]);
    let (server, model) = server([Answer::json(200, &reply_json(content, "end_turn"))]).await;
    let tally = Arc::new(Tally::default());
    let model = model.prices(Prices::new().with("claude", Price::new(3.0, 15.0)));
    let cx = CallCx::detached().with_meter(tally.clone());
    let reply = complete(&model, &cx).await.unwrap();
    assert_eq!(reply.text().as_deref(), Some("grüß dich 🦀"));
    assert_eq!(reply.stop, StopReason::End);
    assert_eq!((tally.exchanges(), tally.spend().usage), (1, reply.usage));
    assert_eq!(tally.spend().cost_micros, Some(90));
    let seen = server.seen();
    assert!(seen[0].0.starts_with("POST /v1/messages "), "{}", seen[0].0);
    assert!(seen[0].1.get("stream").is_none());
}

#[tokio::test]
async fn a_reply_in_parts() {
    let (server, model) = server([Answer::events(stream_of("one two three"))]).await;
    let (heard, reply) = stream(&model).await;
    assert_eq!(heard, "one |two |three|");
    let reply = reply.unwrap();
    assert_eq!(reply.text().as_deref(), Some("one two three"));
    assert_eq!((reply.usage.input, reply.usage.output), (Some(10), Some(9)));
    assert_eq!(server.seen()[0].1["stream"], true);
}

#[tokio::test]
async fn a_loop_with_parallel_calls_is_accepted() {
    let calls = json!([
        {"type": "tool_use", "id": "toolu_1", "name": "t", "input": {"n": 1}},
        {"type": "tool_use", "id": "toolu_2", "name": "t", "input": {}},
    ]);
    let done = json!([{"type": "text", "text": "done"}]);
    let (server, model) = server([
        Answer::json(200, &reply_json(calls, "tool_use")),
        Answer::json(200, &reply_json(done, "end_turn")),
    ])
    .await;
    let tools = ToolSet::builder().with(tool("t", "", |_: Value| async { Ok("ok") })).build();
    let tools = tools.unwrap();
    let mut talk = talk();
    for _ in 0..2 {
        let request = Request::new(talk.sealed().unwrap()).tools(&tools);
        let reply = model.complete(request, &CallCx::detached()).await.unwrap();
        talk.push(reply.into());
        let mut outcomes = tools.call_all(talk.open_calls()).await;
        outcomes.reverse();
        talk.extend(outcomes);
    }
    assert_eq!(talk.last_text().as_deref(), Some("done"));
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn malformed_arguments_become_an_outcome_and_are_accepted_again() {
    let mut events = stream_of("x");
    let block = json!({"type": "tool_use", "id": "toolu_1", "name": "t", "input": {}});
    let delta = json!({"type": "input_json_delta", "partial_json": "{\"n\": "});
    let call = [
        event(json!({"type": "content_block_start", "index": 1, "content_block": block})),
        event(json!({"type": "content_block_delta", "index": 1, "delta": delta})),
        event(json!({"type": "content_block_stop", "index": 1})),
    ];
    events.splice(4..4, call);
    let content = json!([{"type": "text", "text": "sorry"}]);
    let (_server, model) =
        server([Answer::events(events), Answer::json(200, &reply_json(content, "end_turn"))]).await;
    let (_, reply) = stream(&model).await;
    let reply = reply.unwrap();
    let call = reply.calls().next().unwrap().clone();
    assert_eq!(call.arguments, "{\"n\": ");
    assert!(call.json().is_err());
    let mut talk = talk();
    talk.push(reply.into());
    talk.push(Message::Outcome { call: call.id, outcome: ToolOutcome::ok("bad arguments") });
    let request = Request::new(talk.sealed().unwrap());
    let reply = model.complete(request, &CallCx::detached()).await.unwrap();
    assert_eq!(reply.text().as_deref(), Some("sorry"));
}

#[tokio::test]
async fn statuses_are_classified_and_errors_show_no_secrets() {
    let long = "prompt is too long: 9 tokens > 8 maximum";
    let cases = [
        (400, "invalid_request_error", "the canary prompt", LlmErrorKind::InvalidRequest, false),
        (400, "invalid_request_error", long, LlmErrorKind::ContextLength, false),
        (401, "authentication_error", KEY, LlmErrorKind::Auth, false),
        (403, "permission_error", KEY, LlmErrorKind::Auth, false),
        (404, "not_found_error", "model: claude-x", LlmErrorKind::UnknownModel, false),
        (429, "rate_limit_error", "", LlmErrorKind::RateLimited { retry_after: None }, true),
        (500, "api_error", "", LlmErrorKind::Unavailable, true),
        (529, "overloaded_error", "", LlmErrorKind::Overloaded, true),
    ];
    for (status, name, message, kind, retryable) in cases {
        let error = json!({"type": "error", "error": {"type": name, "message": message}});
        let (_server, model) = server([Answer::json(status, &error)]).await;
        let tally = Arc::new(Tally::default());
        let cx = CallCx::detached().with_meter(tally.clone());
        let error = complete(&model, &cx).await.unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (kind, retryable), "{status}");
        let shown = shown(&error);
        assert!(!shown.contains("canary") && shown.contains(name), "{shown}");
        assert_eq!(tally.exchanges(), 1);
    }
    assert!(
        !format!("{:?}", Anthropic::new("m", KEY).header("x-token", "canary")).contains("canary")
    );
}

#[tokio::test]
async fn the_wait_that_the_provider_asks_for_is_advice() {
    let error = json!({"type": "error", "error": {"type": "rate_limit_error", "message": ""}});
    for status in [429, 529] {
        let answer = Answer::json(status, &error).header("retry-after: 7");
        let (_server, model) = server([answer]).await;
        let error = complete(&model, &CallCx::detached()).await.unwrap_err();
        assert_eq!(Advice::find(&error).unwrap().after, Some(Duration::from_secs(7)));
    }
}

#[tokio::test]
async fn a_stream_that_breaks_is_retryable_and_charged_once() {
    for reset in [false, true] {
        let mut events = stream_of("one two");
        events.truncate(3);
        let mut answer = Answer::events(events);
        answer.steps.push(if reset { Step::Reset } else { Step::Close });
        let (_server, model) = server([answer]).await;
        let tally = Arc::new(Tally::default());
        let cx = CallCx::detached().with_meter(tally.clone()).with_listener(|_| {});
        let error = complete(&model, &cx).await.unwrap_err();
        assert_eq!(error.kind(), LlmErrorKind::Stream, "{}", shown(&error));
        assert!(error.is_retryable());
        assert_eq!((tally.exchanges(), tally.spend().usage.input), (1, Some(10)));
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_is_charged_with_what_is_known() {
    let mut answer = Answer::events(stream_of("one two"));
    answer.steps.truncate(3);
    answer.steps.push(Step::Hang);
    let (_server, model) = server([answer]).await;
    let tally = Arc::new(Tally::default());
    let cx = CallCx::detached().with_meter(tally.clone());
    let talk = talk();
    let mut stream = model.stream(Request::new(talk.sealed().unwrap()), &cx);
    while !matches!(stream.next().await.unwrap().unwrap(), Delta::Text(text) if text == "one ") {}
    drop(stream);
    assert_eq!((tally.exchanges(), tally.spend().usage.input), (1, Some(10)));
}

fn phase_of(error: &LlmError) -> Option<TimeoutPhase> {
    match error.kind() {
        LlmErrorKind::Timeout { phase } => Some(phase),
        _ => None,
    }
}

#[tokio::test]
async fn the_first_byte_has_a_limit_and_so_has_the_whole() {
    let hang = || Answer { head: String::new(), steps: vec![Step::Hang] };
    let (_server, model) = server([hang(), hang()]).await;
    // A limit beyond the end of time is none.
    let model = model.timeouts(Timeouts::default().first_byte(Duration::MAX));
    let soon = std::time::Instant::now() + Duration::from_millis(20);
    let error = complete(&model, &CallCx::detached().with_deadline(soon)).await.unwrap_err();
    assert_eq!(phase_of(&error), Some(TimeoutPhase::Total));
    let model = model.timeouts(Timeouts::default().first_byte(Duration::from_millis(20)));
    let error = complete(&model, &CallCx::detached()).await.unwrap_err();
    assert_eq!(phase_of(&error), Some(TimeoutPhase::Headers));

    let (_server, model) = server([hang()]).await;
    let soon = std::time::Instant::now() + Duration::from_millis(20);
    let error = complete(&model, &CallCx::detached().with_deadline(soon)).await.unwrap_err();
    assert_eq!(phase_of(&error), Some(TimeoutPhase::Total));
}

#[tokio::test]
async fn a_pause_has_a_limit() {
    let mut slow = Answer::events(stream_of("one two"));
    slow.steps.truncate(3);
    slow.steps.push(Step::Hang);
    let (_server, model) = server([slow]).await;
    let model = model.timeouts(Timeouts::default().idle(Duration::from_millis(500)));
    let (heard, reply) = stream(&model).await;
    assert_eq!(heard, "one |");
    assert_eq!(phase_of(&reply.unwrap_err()), Some(TimeoutPhase::Read));
}

#[tokio::test]
async fn a_reply_that_is_too_large_is_refused() {
    let mut answer = Answer::json(200, &json!(0));
    answer.head = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_owned();
    answer.steps = vec![Step::Send(" ".repeat(1024 * 1024)); 17];
    answer.steps.push(Step::Close);
    let (_server, model) = server([answer]).await;
    let error = complete(&model, &CallCx::detached()).await.unwrap_err();
    assert_eq!(error.kind(), LlmErrorKind::BadReply);
    assert!(error.to_string().contains("16 MiB"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_not_charged() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let tally = Arc::new(Tally::default());
    let cx = CallCx::detached().with_meter(tally.clone());
    let model = Anthropic::new("claude-x", KEY).base_url(format!("http://{address}/?key=canary"));
    let error = complete(&model, &cx).await.unwrap_err();
    assert_eq!((error.kind(), tally.exchanges()), (LlmErrorKind::Unavailable, 0));
    assert!(!shown(&error).contains("canary"), "{}", shown(&error));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let redirect = Answer::json(302, &json!({})).header("location: http://127.0.0.1:1/canary");
    let (server, model) = server([redirect]).await;
    let error = complete(&model, &CallCx::detached()).await.unwrap_err();
    assert_eq!((error.kind(), server.seen().len()), (LlmErrorKind::InvalidRequest, 1));
    assert!(!error.is_retryable() && error.to_string().contains("check the base URL"), "{error}");
    assert!(!shown(&error).contains("canary"));
}

#[tokio::test]
async fn a_refusal_and_an_empty_answer_are_replies() {
    let (_server, model) = server([
        Answer::json(200, &reply_json(json!([{"type": "text", "text": "no"}]), "refusal")),
        Answer::json(200, &reply_json(json!([]), "end_turn")),
    ])
    .await;
    let refused = complete(&model, &CallCx::detached()).await.unwrap();
    assert_eq!(refused.stop, StopReason::Refusal);
    let empty = complete(&model, &CallCx::detached()).await.unwrap();
    assert_eq!((empty.text(), empty.stop), (None, StopReason::End));
}
