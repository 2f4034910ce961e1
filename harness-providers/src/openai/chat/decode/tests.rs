//! Replies and events as the reference describes them: <https://platform.openai.com/docs/api-reference/chat>,
//! the pages "The chat completion object" and "The chat completion chunk object", whose source is
//! `openapi.yaml` of <https://github.com/openai/openai-openapi>, as of 21 August 2026. They are written for
//! these tests.

use super::*;
use crate::exchange::check;
use crate::sse;
use harness::llm::{Block, CallCx, LlmErrorKind, Reply, ToolCall, Turn};
use serde_json::json;

/// Text with more than ASCII, two calls that interleave, and the usage after the end of the text.
const STREAM: &str = r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-x-2026-01-01","service_tier":"default","system_fingerprint":"fp","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x"}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-x-2026-01-01","choices":[{"index":0,"delta":{"content":"grüß "},"logprobs":null,"finish_reason":null}],"usage":null}

: a comment

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-x-2026-01-01","choices":[{"index":0,"delta":{"content":"dich 🦀"},"logprobs":null,"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-x-2026-01-01","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"weather","arguments":""}}]},"logprobs":null,"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-x-2026-01-01","choices":[{"index":0,"delta":{"tool_calls":[{"index":4096,"id":"call_2","type":"function","function":{"name":"now","arguments":""}}]},"logprobs":null,"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-x-2026-01-01","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\": \"Ber"}},{"index":4096,"function":{"arguments":"{"}}]},"logprobs":null,"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-x-2026-01-01","choices":[{"index":0,"delta":{"tool_calls":[{"index":4096,"function":{"arguments":"}"}},{"index":0,"function":{"arguments":"gen\"}"}}]},"logprobs":null,"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-x-2026-01-01","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"}],"usage":null}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-x-2026-01-01","choices":[],"usage":{"prompt_tokens":23,"completion_tokens":89,"total_tokens":112,"prompt_tokens_details":{"cached_tokens":11,"cache_write_tokens":7,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":64,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}}

data: [DONE]

"#;

fn asked() -> ModelId {
    ModelId::new("openai", "gpt-x")
}

fn expected() -> Reply {
    let turn = Turn::new([
        "grüß dich 🦀".into(),
        ToolCall::new("call_1", "weather", "{\"city\": \"Bergen\"}").into(),
        ToolCall::new("call_2", "now", "{}").into(),
    ]);
    let usage = Usage {
        cache_read: Some(11),
        cache_write: Some(7),
        reasoning: Some(64),
        ..Usage::tokens(23, 89)
    };
    let model = ModelId::new("openai", "gpt-x-2026-01-01");
    Reply::new(turn, StopReason::ToolCalls, model).with_usage(usage)
}

/// The reply of a stream that arrives in these parts.
async fn streamed(parts: Vec<&[u8]>) -> Result<Reply, LlmError> {
    check::streamed(sse::events, asked(), Events::new(asked()), parts).await
}

/// The reply of a stream of these choices.
async fn of(choices: impl IntoIterator<Item = Value>) -> Result<Reply, LlmError> {
    let event = |choice| format!("data: {}\n\n", json!({"choices": [choice]}));
    let stream: String = choices.into_iter().map(event).collect();
    streamed(vec![format!("{stream}data: [DONE]\n\n").as_bytes()]).await
}

#[tokio::test]
async fn a_stream_folds_to_the_same_reply_however_it_is_cut() {
    check::same_however_cut(STREAM, &check::SSE, &expected(), streamed).await;
}

#[tokio::test]
async fn a_stream_that_ends_early_is_an_error_wherever_it_ends() {
    let end = STREAM.find("data: [DONE]").unwrap();
    for at in (0..end).step_by(7).chain([end]) {
        let error = streamed(vec![&STREAM.as_bytes()[..at]]).await.unwrap_err();
        assert_eq!(error.kind(), LlmErrorKind::Stream, "at {at}");
        assert!(error.is_retryable());
    }
}

#[tokio::test]
async fn an_error_inside_a_stream_is_the_error_of_the_call() {
    let start = &STREAM[..STREAM.find(": a comment").unwrap()];
    let cases = [
        ("server_is_overloaded", LlmErrorKind::Overloaded),
        ("rate_limit_exceeded", LlmErrorKind::RateLimited { retry_after: None }),
        ("insufficient_quota", LlmErrorKind::Auth),
        ("server_error", LlmErrorKind::Unavailable),
        ("context_length_exceeded", LlmErrorKind::ContextLength),
        ("invalid_image", LlmErrorKind::InvalidRequest),
        ("new_error", LlmErrorKind::Stream),
    ];
    for (name, kind) in cases {
        let error = json!({"error": {"message": "the secret prompt", "code": name}});
        let stream = format!("{start}data: {error}\n\n");
        let error = streamed(vec![stream.as_bytes()]).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{name}");
        assert!(!format!("{error:?} {error}").contains("secret prompt"));
    }
}

#[tokio::test]
async fn what_does_not_follow_the_protocol_is_a_bad_reply() {
    let bad = [
        "data: not json\n\n",
        "data: [DONE]\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":3,\"function\":{\"arguments\":\"{\"}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":3,\"id\":\"c\"}]}}]}\n\n",
    ];
    for stream in bad {
        let error = streamed(vec![stream.as_bytes()]).await.unwrap_err();
        assert_eq!(error.kind(), LlmErrorKind::BadReply, "{stream}");
    }
    for body in [
        "{}",
        "[]",
        "{\"choices\":[]}",
        "{\"choices\":[{\"message\":{\"content\":\"x\"}}]}",
        "<html>",
    ] {
        let error = completion(&asked(), body.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), LlmErrorKind::BadReply, "{body}");
    }
}

#[tokio::test]
async fn malformed_arguments_are_kept_byte_for_byte() {
    let call = |arguments: &str| json!({"index": 0, "id": "c", "function": {"name": "t", "arguments": arguments}});
    let more = |arguments: &str| json!({"delta": {"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]}});
    let reply = of([
        json!({"delta": {"tool_calls": [call("{\"n\": ")]}}),
        more("\n1,,"),
        json!({"delta": {}, "finish_reason": "stop"}),
    ]);
    let reply = reply.await.unwrap();
    assert_eq!(reply.turn, Turn::new([ToolCall::new("c", "t", "{\"n\": \n1,,").into()]));
    assert_eq!(reply.stop, StopReason::ToolCalls);
}

/// Other servers give no index, the same index to every call, repeat the id, or send objects.
#[tokio::test]
async fn calls_of_compatible_servers_are_kept_apart() {
    let whole = |id: &str, arguments: Value| json!({"id": id, "function": {"name": "t", "arguments": arguments}});
    let at_zero = |id: &str, arguments: &str| json!({"index": 0, "id": id, "function": {"name": "t", "arguments": arguments}});
    let two = Turn::new([
        ToolCall::new("a", "t", "{\"n\":1}").into(),
        ToolCall::new("b", "t", "{\"n\":2}").into(),
    ]);
    let streams = [
        vec![json!([whole("a", json!("{\"n\":1}")), whole("b", json!({"n": 2}))])],
        vec![json!([at_zero("a", "{\"n\":1}")]), json!([at_zero("b", "{\"n\":2}")])],
        vec![
            json!([at_zero("a", "{\"n\"")]),
            json!([at_zero("a", ":1}")]),
            json!([{"index": 1, "id": "b", "function": {"name": "t", "arguments": "{\"n\":2}"}}]),
        ],
    ];
    for calls in streams {
        let mut choices: Vec<_> =
            calls.iter().map(|calls| json!({"delta": {"tool_calls": calls}})).collect();
        choices.push(json!({"delta": {}, "finish_reason": "tool_calls"}));
        assert_eq!(of(choices).await.unwrap().turn, two, "{calls:?}");
    }
}

#[tokio::test]
async fn reasoning_that_a_server_shows_is_read() {
    for field in ["reasoning_content", "reasoning"] {
        let reply = of([
            json!({"delta": {field: "hm, "}}),
            json!({"delta": {field: "yes", "content": null}}),
            json!({"delta": {"content": "so"}, "finish_reason": "stop"}),
        ]);
        let blocks = [Block::Reasoning("hm, yes".into()), "so".into()];
        assert_eq!(reply.await.unwrap().turn, Turn::new(blocks));
    }
}

fn whole(body: &Value) -> Result<Reply, LlmError> {
    check::whole(asked(), completion(&asked(), body.to_string().as_bytes())?, &CallCx::detached())
}

#[test]
fn a_reply_in_one_piece_is_the_same_as_in_parts() {
    let reply = whole(&json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-x-2026-01-01",
        "choices": [{
            "index": 0,
            "message": {
                "role": "assistant", "content": "grüß dich 🦀", "refusal": null, "annotations": [],
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {
                        "name": "weather", "arguments": "{\"city\": \"Bergen\"}",
                    }},
                    {"id": "call_2", "type": "function", "function": {
                        "name": "now", "arguments": "{}",
                    }},
                ],
            },
            "logprobs": null,
            "finish_reason": "tool_calls",
        }],
        "usage": {
            "prompt_tokens": 23, "completion_tokens": 89, "total_tokens": 112,
            "prompt_tokens_details": {"cached_tokens": 11, "cache_write_tokens": 7},
            "completion_tokens_details": {"reasoning_tokens": 64},
        },
    }));
    assert_eq!(reply.unwrap(), expected());
}

#[tokio::test]
async fn stop_reasons_and_refusals() {
    let reasons = [
        ("stop", StopReason::End),
        ("length", StopReason::MaxTokens),
        ("content_filter", StopReason::ContentFilter),
        ("function_call", StopReason::ToolCalls),
        ("later", StopReason::Other("later".into())),
    ];
    for (name, reason) in reasons {
        let message = json!({"role": "assistant", "content": null});
        let reply = whole(&json!({"choices": [{"message": message, "finish_reason": name}]}));
        let reply = reply.unwrap();
        assert_eq!((reply.stop, reply.turn.blocks.len()), (reason, 0));
        assert_eq!(reply.usage, Usage::default());
    }
    let refused = [
        json!({"delta": {"refusal": "I can"}}),
        json!({"delta": {"refusal": "not"}}),
        json!({"delta": {}, "finish_reason": "stop"}),
    ];
    let reply = of(refused).await.unwrap();
    assert_eq!((reply.text().as_deref(), reply.stop), (Some("I cannot"), StopReason::Refusal));
}
