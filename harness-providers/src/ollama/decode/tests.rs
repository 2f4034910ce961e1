//! Replies and lines as `docs/api.md`, `docs/api/errors.mdx` and `api/types.go` of
//! github.com/ollama/ollama describe them, as of 21 August 2026. They are written for these tests.

use super::*;
use crate::exchange::check;
use crate::failure::of_status;
use crate::ndjson;
use harness::llm::{Block, CallCx, Reply, ToolCall, Transcript, Turn};
use reqwest::StatusCode;

/// A thought, text with more than ASCII, two calls: one with an id, as newer servers write it.
const STREAM: &str = r#"{"model":"qwen3","created_at":"2025-07-07T20:22:19.184789Z","message":{"role":"assistant","content":"","thinking":"hm, "},"done":false}
{"model":"qwen3","created_at":"2025-07-07T20:22:19.184789Z","message":{"role":"assistant","content":"","thinking":"yes"},"done":false}
{"model":"qwen3","created_at":"2025-07-07T20:22:19.184789Z","message":{"role":"assistant","content":"grüß "},"done":false}
{"model":"qwen3","created_at":"2025-07-07T20:22:19.184789Z","message":{"role":"assistant","content":"dich 🦀"},"done":false}
{"model":"qwen3","created_at":"2025-07-07T20:22:19.184789Z","message":{"role":"assistant","content":"","tool_calls":[{"function":{"index":0,"name":"weather","arguments":{"city":"Bergen"}}}]},"done":false}
{"model":"qwen3","created_at":"2025-07-07T20:22:19.184789Z","message":{"role":"assistant","content":"","tool_calls":[{"id":"call_x7","function":{"index":1,"name":"now","arguments":{}}}]},"done":false}
{"model":"qwen3","created_at":"2025-07-07T20:22:19.19314Z","message":{"role":"assistant","content":""},"done_reason":"stop","done":true,"total_duration":182242375,"load_duration":41295167,"prompt_eval_count":169,"prompt_eval_duration":24573166,"eval_count":15,"eval_duration":115959084}
"#;

fn asked() -> ModelId {
    ModelId::new("ollama", "qwen3")
}

fn events() -> Events {
    Events::new(asked(), MadeIds::after(&Transcript::default()))
}

fn expected() -> Reply {
    let data = json!({"type": "thinking"});
    let turn = Turn::new([
        Block::Reasoning("hm, yes".into()),
        Block::Opaque { protocol: PROTOCOL.into(), model: asked(), data },
        "grüß dich 🦀".into(),
        ToolCall::new("call-1", "weather", "{\"city\":\"Bergen\"}").into(),
        ToolCall::new("call_x7", "now", "{}").into(),
    ]);
    Reply::new(turn, StopReason::ToolCalls, asked()).with_usage(Usage::tokens(169, 15))
}

/// The reply of a stream that arrives in these parts.
async fn streamed(parts: Vec<&[u8]>) -> Result<Reply, LlmError> {
    check::streamed(ndjson::lines, asked(), events(), parts).await
}

#[tokio::test]
async fn a_stream_folds_to_the_same_reply_however_it_is_cut() {
    check::same_however_cut(STREAM, &check::LINES, &expected(), streamed).await;
    // The last line is complete without its end.
    assert_eq!(streamed(vec![STREAM.trim_end().as_bytes()]).await.unwrap(), expected());
}

#[tokio::test]
async fn a_stream_that_ends_early_is_an_error_wherever_it_ends() {
    // The last line is complete without its end.
    for at in 0..STREAM.len() - 1 {
        let error = streamed(vec![&STREAM.as_bytes()[..at]]).await.unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (LlmErrorKind::Stream, true), "at {at}");
    }
}

#[tokio::test]
async fn an_error_in_a_stream_is_the_error_of_the_call() {
    let start = &STREAM[..STREAM.find('\n').unwrap() + 1];
    let cases = [
        ("an error was encountered while running the model: the secret", LlmErrorKind::Unavailable),
        ("the input length exceeds the context length", LlmErrorKind::ContextLength),
    ];
    for (text, kind) in cases {
        let stream = format!("{start}{}\n", json!({"error": text}));
        let error = streamed(vec![stream.as_bytes()]).await.unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(!format!("{error:?} {error}").contains("secret"));
    }
}

#[tokio::test]
async fn what_does_not_follow_the_protocol_is_a_bad_reply() {
    for line in [
        "not json\n",
        "[]\n",
        "{}\n",
        "{\"message\":{\"tool_calls\":[{\"function\":{}}]},\"done\":false}\n",
    ] {
        let error = streamed(vec![line.as_bytes()]).await.unwrap_err();
        assert_eq!(error.kind(), LlmErrorKind::BadReply, "{line}");
    }
}

fn whole(body: &Value) -> Result<Reply, LlmError> {
    check::whole(asked(), events().whole(body.to_string().as_bytes())?, &CallCx::detached())
}

#[test]
fn a_reply_in_one_piece_is_the_same_as_in_parts() {
    let reply = whole(&json!({
        "model": "qwen3",
        "message": {
            "role": "assistant", "thinking": "hm, yes", "content": "grüß dich 🦀",
            "tool_calls": [
                {"function": {"name": "weather", "arguments": {"city": "Bergen"}}},
                {"id": "call_x7", "function": {"name": "now", "arguments": {}}},
            ],
        },
        "done_reason": "stop", "done": true, "prompt_eval_count": 169, "eval_count": 15,
    }));
    assert_eq!(reply.unwrap(), expected());
}

#[test]
fn reasons_to_stop_empty_replies_and_malformed_arguments() {
    let message = json!({"role": "assistant", "content": ""});
    for (reason, stop) in [
        (json!("stop"), StopReason::End),
        (Value::Null, StopReason::End),
        (json!("length"), StopReason::MaxTokens),
        (json!("load"), StopReason::Other("load".into())),
    ] {
        let reply = whole(&json!({"message": message, "done": true, "done_reason": reason}));
        let reply = reply.unwrap();
        assert_eq!((reply.stop, reply.turn.blocks.len(), reply.usage), (stop, 0, Usage::default()));
    }
    assert_eq!(
        whole(&json!({"message": message, "done": false})).unwrap_err().kind(),
        LlmErrorKind::BadReply
    );
    let calls = json!([{"function": {"name": "t", "arguments": "{\"n\": "}}]);
    let reply = whole(&json!({"message": {"tool_calls": calls}, "done": true})).unwrap();
    let call = reply.calls().next().unwrap();
    assert_eq!((call.arguments.as_str(), reply.stop.clone()), ("{\"n\": ", StopReason::ToolCalls));
}

#[test]
fn a_request_that_is_too_long_is_known_by_its_error() {
    let of = |status: u16, text: &str| {
        let said = said(json!({"error": text}).to_string().as_bytes());
        of_status(StatusCode::from_u16(status).unwrap(), &said, None, &asked()).kind()
    };
    let long = "the prompt is longer than the context length currently available to the model";
    assert_eq!(of(400, long), LlmErrorKind::ContextLength);
    assert_eq!(
        of(400, "request (302 tokens) exceeds the available context size (256 tokens)"),
        LlmErrorKind::ContextLength
    );
    assert_eq!(of(400, "\"qwen3\" does not support thinking"), LlmErrorKind::InvalidRequest);
    assert_eq!(of(404, "model 'qwen3' not found"), LlmErrorKind::UnknownModel);
    assert_eq!(of(503, "server busy, please try again."), LlmErrorKind::Overloaded);
}
