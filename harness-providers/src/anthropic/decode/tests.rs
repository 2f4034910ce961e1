//! Replies and events as the reference of the Messages API describes them:
//! <https://platform.claude.com/docs>, the pages "Messages" and "Streaming messages", as of November
//! 2026. They are written for these tests.

use super::*;
use crate::exchange::check;
use crate::sse;
use harness::llm::{Block, CallCx, Reply, ToolCall, Turn};

/// Reasoning, text with more than ASCII, two calls, a block that only the provider knows.
const STREAM: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude-x-20260101","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":5,"cache_creation_input_tokens":7,"cache_read_input_tokens":11,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm, "}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"yes"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"grüß "}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"dich 🦀"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"weather","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"city\": \"Ber"}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"gen\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_2","name":"now","input":{}}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: content_block_start
data: {"type":"content_block_start","index":4,"content_block":{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":4}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":89}}

event: message_stop
data: {"type":"message_stop"}

"#;

fn asked() -> ModelId {
    ModelId::new("anthropic", "claude-x")
}

fn opaque(data: Value) -> Block {
    Block::Opaque { protocol: PROTOCOL.into(), model: asked(), data }
}

fn expected() -> Reply {
    let turn = Turn::new([
        Block::Reasoning("hm, yes".into()),
        opaque(json!({"type": "thinking", "signature": "c2ln"})),
        "grüß dich 🦀".into(),
        ToolCall::new("toolu_1", "weather", "{\"city\": \"Bergen\"}").into(),
        ToolCall::new("toolu_2", "now", "").into(),
        opaque(json!({
            "type": "server_tool_use",
            "id": "srv_1",
            "name": "web_search",
            "input": {"query": "x"},
        })),
    ]);
    let usage = Usage { cache_read: Some(11), cache_write: Some(7), ..Usage::tokens(23, 89) };
    let model = ModelId::new("anthropic", "claude-x-20260101");
    Reply::new(turn, StopReason::ToolCalls, model).with_usage(usage)
}

/// The reply of a stream that arrives in these parts.
async fn streamed(parts: Vec<&[u8]>) -> Result<Reply, LlmError> {
    check::streamed(sse::events, asked(), Events::new(asked()), parts).await
}

#[tokio::test]
async fn a_stream_folds_to_the_same_reply_however_it_is_cut() {
    check::same_however_cut(STREAM, &check::SSE, &expected(), streamed).await;
}

#[tokio::test]
async fn a_stream_that_ends_early_is_an_error_wherever_it_ends() {
    let end = STREAM.find("event: message_stop").unwrap();
    for at in (0..end).step_by(7).chain([end]) {
        let error = streamed(vec![&STREAM.as_bytes()[..at]]).await.unwrap_err();
        assert_eq!(error.kind(), LlmErrorKind::Stream, "at {at}");
        assert!(error.is_retryable());
    }
}

#[tokio::test]
async fn an_error_event_is_the_error_of_the_call() {
    let start = &STREAM[..STREAM.find("event: ping").unwrap()];
    let cases = [
        ("overloaded_error", LlmErrorKind::Overloaded),
        ("rate_limit_error", LlmErrorKind::RateLimited { retry_after: None }),
        ("api_error", LlmErrorKind::Unavailable),
        ("new_error", LlmErrorKind::Stream),
    ];
    for (name, kind) in cases {
        let event = format!(
            "{start}event: error\ndata: {{\"type\":\"error\",\"error\":{{\"type\":\"{name}\",\"message\":\"the secret prompt\"}}}}\n\n"
        );
        let error = streamed(vec![event.as_bytes()]).await.unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(!format!("{error:?} {error}").contains("secret prompt"));
    }
}

#[tokio::test]
async fn what_does_not_follow_the_protocol_is_a_bad_reply() {
    let bad = [
        "data: not json\n\n".to_owned(),
        "data: {\"type\":\"content_block_delta\",\"index\":3,\"delta\":{}}\n\n".to_owned(),
        "data: {\"type\":\"message_stop\"}\n\n".to_owned(),
        "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{}}\n\n".to_owned(),
    ];
    for stream in bad {
        let error = streamed(vec![stream.as_bytes()]).await.unwrap_err();
        assert_eq!(error.kind(), LlmErrorKind::BadReply, "{stream}");
    }
    let error = streamed(vec![&b"data: \xff\xfe\n\n"[..]]).await.unwrap_err();
    assert_eq!(error.kind(), LlmErrorKind::BadReply);
}

fn whole(body: &Value) -> Result<Reply, LlmError> {
    check::whole(asked(), message(&asked(), body.to_string().as_bytes())?, &CallCx::detached())
}

#[test]
fn a_reply_in_one_piece_is_the_same_as_in_parts() {
    let reply = whole(&json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x-20260101",
        "content": [
            {"type": "thinking", "thinking": "hm, yes", "signature": "c2ln"},
            {"type": "text", "text": "grüß dich 🦀"},
            {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Bergen"}},
            {"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}},
            {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}},
        ],
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": {
            "input_tokens": 5, "cache_creation_input_tokens": 7, "cache_read_input_tokens": 11,
            "output_tokens": 89,
        },
    }));
    let mut expected = expected();
    // The text of the arguments is not kept in one piece, only their value.
    expected.turn.blocks[3] = ToolCall::new("toolu_1", "weather", "{\"city\":\"Bergen\"}").into();
    assert_eq!(reply.unwrap(), expected);
}

#[test]
fn stop_reasons_and_empty_replies() {
    let reasons = [
        ("end_turn", StopReason::End),
        ("max_tokens", StopReason::MaxTokens),
        ("model_context_window_exceeded", StopReason::MaxTokens),
        ("stop_sequence", StopReason::StopSequence),
        ("pause_turn", StopReason::Paused),
        ("refusal", StopReason::Refusal),
        ("later", StopReason::Other("later".into())),
    ];
    for (name, reason) in reasons {
        let reply = whole(&json!({"type": "message", "content": [], "stop_reason": name})).unwrap();
        assert_eq!((reply.stop, reply.turn.blocks.len()), (reason, 0));
        assert_eq!(reply.usage, Usage::default());
    }
    let cut = whole(&json!({"type": "message", "content": [], "stop_reason": null}));
    assert_eq!(cut.unwrap_err().kind(), LlmErrorKind::BadReply);
    let page = whole(&json!({"html": true}));
    assert_eq!(page.unwrap_err().kind(), LlmErrorKind::BadReply);
}

#[test]
fn a_request_that_is_too_long_is_known_by_its_error() {
    let body = |message: &str| json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
    let read = |message| said(body(message).to_string().as_bytes());
    assert!(read("prompt is too long: 201000 tokens > 200000 maximum").too_long);
    let other = read("messages.0.content: Field required");
    assert!(!other.too_long);
    assert_eq!(other.about.as_deref(), Some("messages.0.content"));
    assert!(said(b"<html>").code.is_none());
}
