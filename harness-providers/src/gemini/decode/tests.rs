//! Replies and events as the reference describes them: <https://ai.google.dev/api/generate-content>, the
//! pages "Thought signatures" and "Troubleshooting" of <https://ai.google.dev/gemini-api/docs>, and
//! `types.py` of github.com/googleapis/python-genai, as of August 2026. They are written for these tests.

use super::*;
use crate::exchange::check;
use crate::failure::of_status;
use crate::sse;
use harness::llm::{Block, CallCx, Tally, ToolCall, Transcript, Turn};
use reqwest::StatusCode;
use std::sync::Arc;

/// A thought, text with more than ASCII and a signature in the middle, two calls, a part that only the
/// provider knows.
const STREAM: &str = r#"data: {"candidates":[{"content":{"parts":[{"text":"hm, ","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":20,"totalTokenCount":20},"modelVersion":"gemini-x-001"}

data: {"candidates":[{"content":{"parts":[{"text":"yes","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":20,"totalTokenCount":24,"thoughtsTokenCount":4},"modelVersion":"gemini-x-001"}

data: {"candidates":[{"content":{"parts":[{"text":"grüß "}],"role":"model"},"index":0}],"modelVersion":"gemini-x-001"}

data: {"candidates":[{"content":{"parts":[{"text":"dich 🦀","thoughtSignature":"c2ln"}],"role":"model"},"index":0}]}

data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"weather","args":{"city":"Bergen"}},"thoughtSignature":"Y2FsbA=="},{"functionCall":{"id":"fc-7","name":"now"}}],"role":"model"},"index":0}]}

data: {"candidates":[{"content":{"parts":[{"executableCode":{"language":"PYTHON","code":"1"}}],"role":"model"},"index":0}]}

data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":20,"cachedContentTokenCount":7,"toolUsePromptTokenCount":3,"candidatesTokenCount":11,"thoughtsTokenCount":4,"totalTokenCount":38},"modelVersion":"gemini-x-001"}

"#;

fn asked() -> ModelId {
    ModelId::new("gemini", "gemini-x")
}

fn events() -> Events {
    Events::new(asked(), MadeIds::after(&Transcript::default()))
}

fn opaque(data: Value) -> Block {
    Block::Opaque { protocol: PROTOCOL.into(), model: asked(), data }
}

fn expected() -> Reply {
    let signed = |signature: &str, of: &str, bytes: usize| {
        opaque(json!({"thoughtSignature": signature, "of": of, "bytes": bytes}))
    };
    let turn = Turn::new([
        Block::Reasoning("hm, yes".into()),
        "grüß dich 🦀".into(),
        signed("c2ln", "text", "dich 🦀".len()),
        ToolCall::new("call-1", "weather", "{\"city\":\"Bergen\"}").into(),
        signed("Y2FsbA==", "call", 0),
        ToolCall::new("fc-7", "now", "").into(),
        opaque(json!({"part": {"executableCode": {"language": "PYTHON", "code": "1"}}})),
    ]);
    let usage = Usage { cache_read: Some(7), reasoning: Some(4), ..Usage::tokens(23, 15) };
    let model = ModelId::new("gemini", "gemini-x-001");
    Reply::new(turn, StopReason::ToolCalls, model).with_usage(usage)
}

/// The reply of a stream that arrives in these parts.
async fn streamed(parts: Vec<&[u8]>) -> Result<Reply, LlmError> {
    check::streamed(sse::events, asked(), events(), parts).await
}

#[tokio::test]
async fn a_stream_folds_to_the_same_reply_however_it_is_cut() {
    check::same_however_cut(STREAM, &check::SSE, &expected(), streamed).await;
}

#[tokio::test]
async fn a_stream_that_ends_early_is_an_error_wherever_it_ends() {
    let end = STREAM.len() - 2;
    for at in (0..end).step_by(7).chain([end]) {
        let error = streamed(vec![&STREAM.as_bytes()[..at]]).await.unwrap_err();
        assert_eq!(error.kind(), LlmErrorKind::Stream, "at {at}");
    }
}

#[tokio::test]
async fn an_error_event_is_the_error_of_the_call() {
    let start = &STREAM[..STREAM.find("\n\n").unwrap() + 2];
    let retry =
        r#","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"2s"}]"#;
    let wait = Some(Duration::from_secs(2));
    let cases = [
        ("UNAVAILABLE", "", LlmErrorKind::Overloaded),
        ("RESOURCE_EXHAUSTED", retry, LlmErrorKind::RateLimited { retry_after: wait }),
        ("INTERNAL", "", LlmErrorKind::Unavailable),
        ("PERMISSION_DENIED", "", LlmErrorKind::Auth),
        ("INVALID_ARGUMENT", "", LlmErrorKind::InvalidRequest),
        ("NEW", "", LlmErrorKind::Stream),
    ];
    for (name, details, kind) in cases {
        let event = format!(
            "{start}data: {{\"error\":{{\"code\":1,\"message\":\"the secret prompt\",\"status\":\"{name}\"{details}}}}}\n\n"
        );
        let error = streamed(vec![event.as_bytes()]).await.unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(!format!("{error:?} {error}").contains("secret prompt"));
    }
}

#[tokio::test]
async fn what_does_not_follow_the_protocol_is_a_bad_reply() {
    let part = |part: &str| {
        format!("data: {{\"candidates\":[{{\"content\":{{\"parts\":[{part}]}}}}]}}\n\n")
    };
    let bad = [
        "data: not json\n\n".to_owned(),
        "data: []\n\n".to_owned(),
        part(r#"{"functionCall":{"args":{}}}"#),
        part(r#"{"functionCall":{"name":"t","args":[1]}}"#),
    ];
    for stream in bad {
        let error = streamed(vec![stream.as_bytes()]).await.unwrap_err();
        assert_eq!(error.kind(), LlmErrorKind::BadReply, "{stream}");
    }
}

fn whole(body: &Value, cx: &CallCx) -> Result<Reply, LlmError> {
    let deltas = events().whole(body.to_string().as_bytes())?;
    with_calls(check::whole(asked(), deltas, cx)?)
}

#[test]
fn a_reply_in_one_piece_is_the_same_as_in_parts() {
    let reply = whole(
        &json!({
            "candidates": [
                {"index": 1, "content": {"parts": [{"text": "another candidate"}]}},
                {"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [
                    {"text": "hm, yes", "thought": true},
                    {"text": "grüß "},
                    {"text": "dich 🦀", "thoughtSignature": "c2ln"},
                    {
                        "functionCall": {"name": "weather", "args": {"city": "Bergen"}},
                        "thoughtSignature": "Y2FsbA==",
                    },
                    {"functionCall": {"id": "fc-7", "name": "now"}},
                    {"executableCode": {"language": "PYTHON", "code": "1"}},
                ]}},
            ],
            "usageMetadata": {
                "promptTokenCount": 20, "cachedContentTokenCount": 7, "toolUsePromptTokenCount": 3,
                "candidatesTokenCount": 11, "thoughtsTokenCount": 4, "totalTokenCount": 38,
            },
            "modelVersion": "gemini-x-001",
        }),
        &CallCx::detached(),
    );
    assert_eq!(reply.unwrap(), expected());
}

#[test]
fn reasons_to_stop_and_empty_replies() {
    let reasons = [
        ("STOP", StopReason::End),
        ("MAX_TOKENS", StopReason::MaxTokens),
        ("SAFETY", StopReason::ContentFilter),
        ("RECITATION", StopReason::ContentFilter),
        ("BLOCKLIST", StopReason::ContentFilter),
        ("PROHIBITED_CONTENT", StopReason::ContentFilter),
        ("SPII", StopReason::ContentFilter),
        ("LANGUAGE", StopReason::Other("LANGUAGE".into())),
        ("LATER", StopReason::Other("LATER".into())),
    ];
    for (name, reason) in reasons {
        let body = json!({"candidates": [{"finishReason": name}]});
        let reply = whole(&body, &CallCx::detached()).unwrap();
        assert_eq!((reply.stop, reply.turn.blocks.len()), (reason, 0));
        assert_eq!(reply.usage, Usage::default());
    }
    let cut = whole(&json!({"candidates": [{"content": {}}]}), &CallCx::detached());
    assert_eq!(cut.unwrap_err().kind(), LlmErrorKind::BadReply);
}

#[test]
fn a_prompt_that_is_blocked_is_a_withheld_reply() {
    let body = json!({
        "promptFeedback": {"blockReason": "SAFETY", "safetyRatings": []},
        "usageMetadata": {"promptTokenCount": 9, "totalTokenCount": 9},
        "modelVersion": "gemini-x-001",
    });
    let reply = whole(&body, &CallCx::detached()).unwrap();
    assert_eq!((reply.text(), reply.stop), (None, StopReason::ContentFilter));
    assert_eq!(reply.usage.input, Some(9));
}

#[test]
fn a_call_that_is_withheld_is_a_bad_reply_and_is_charged() {
    for reason in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"] {
        let body = json!({
            "candidates": [{"finishReason": reason, "finishMessage": "Malformed: the secret", "content": {}}],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3},
        });
        let tally = Arc::new(Tally::default());
        let error = whole(&body, &CallCx::detached().with_meter(tally.clone())).unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (LlmErrorKind::BadReply, true));
        let shown = error.to_string();
        assert!(shown.contains(reason) && !shown.contains("secret"), "{shown}");
        assert_eq!(tally.spend().usage.total(), Some(12));
    }
}

#[test]
fn errors_have_the_kind_and_the_wait_of_their_details() {
    let of = |status: u16, name: &str, message: &str, details: Value| {
        let body = json!({"error": {
            "code": status, "message": message, "status": name, "details": details,
        }});
        let said = said(body.to_string().as_bytes());
        of_status(StatusCode::from_u16(status).unwrap(), &said, None, &asked())
    };
    let rpc = |name: &str| format!("type.googleapis.com/google.rpc.{name}");
    let details = json!([
        {"@type": rpc("QuotaFailure"), "violations": []},
        {"@type": rpc("RetryInfo"), "retryDelay": "34.5s"},
    ]);
    let wait = Some(Duration::from_millis(34_500));
    let error = of(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota", details);
    assert_eq!(error.kind(), LlmErrorKind::RateLimited { retry_after: wait });
    let details = json!([{"@type": rpc("RetryInfo"), "retryDelay": "1s"}]);
    let error = of(503, "UNAVAILABLE", "The model is overloaded.", details);
    assert_eq!(error.kind(), LlmErrorKind::Overloaded);
    assert_eq!(error.advice().after, Some(Duration::from_secs(1)));
    let details = json!([{"@type": rpc("ErrorInfo"), "reason": "API_KEY_INVALID"}]);
    let error = of(400, "INVALID_ARGUMENT", "API key not valid.", details);
    assert_eq!(error.kind(), LlmErrorKind::Auth);
    let details = json!([{
        "@type": rpc("BadRequest"), "fieldViolations": [{"field": "contents[0].parts"}],
    }]);
    let error = of(400, "INVALID_ARGUMENT", "the secret prompt", details);
    assert_eq!(error.kind(), LlmErrorKind::InvalidRequest);
    let shown = error.to_string();
    assert!(shown.contains("`INVALID_ARGUMENT` at `contents[0].parts`"), "{shown}");
    assert!(!shown.contains("secret"));
    let long = "The input token count (9) exceeds the maximum number of tokens allowed (8).";
    let error = of(400, "INVALID_ARGUMENT", long, Value::Null);
    assert!(error.is_context_length());
    // In a list, as a stream that is no stream of events has it.
    assert_eq!(said(br#"[{"error": {"status": "INTERNAL"}}]"#).code.as_deref(), Some("INTERNAL"));
    assert!(said(b"<html>").code.is_none());
}
