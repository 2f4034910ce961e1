//! Replies and events as the reference describes them:
//! <https://platform.openai.com/docs/api-reference/responses>, the pages "The response object" and
//! "Streaming events", whose source is `openapi.yaml` of <https://github.com/openai/openai-openapi>, as of
//! 21 August 2026. They are written for these tests.

use super::*;
use crate::exchange::check;
use crate::sse;
use harness::llm::{Block, CallCx, LlmErrorKind, Reply, ToolCall, Turn};

/// The items of the reply of these tests.
fn items() -> Value {
    json!([
        {
            "id": "rs_1", "type": "reasoning", "encrypted_content": "ZW5j", "status": "completed",
            "summary": [
                {"type": "summary_text", "text": "hm, yes"},
                {"type": "summary_text", "text": "so"},
            ],
        },
        {
            "id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
            "phase": "commentary",
            "content": [{"type": "output_text", "text": "grüß dich 🦀", "annotations": []}],
        },
        {
            "id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_1",
            "name": "weather", "arguments": "{\"city\": \"Bergen\"}",
        },
        {
            "id": "fc_2", "type": "function_call", "status": "completed", "call_id": "call_2",
            "name": "now", "arguments": "{}",
        },
        {"id": "ws_1", "type": "web_search_call", "status": "completed"},
    ])
}

fn envelope(status: &str) -> Value {
    json!({
        "id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-x-2026-01-01",
        "status": status, "error": null, "incomplete_details": null, "output": [], "usage": null,
    })
}

fn completed() -> Value {
    let mut response = envelope("completed");
    response["output"] = items();
    response["usage"] = json!({
        "input_tokens": 23, "input_tokens_details": {"cached_tokens": 11, "cache_write_tokens": 7},
        "output_tokens": 89, "output_tokens_details": {"reasoning_tokens": 64},
        "total_tokens": 112,
    });
    response
}

fn event(json: &Value) -> String {
    format!("event: {}\ndata: {json}\n\n", json["type"].as_str().unwrap())
}

fn delta(name: &str, index: u64, delta: &str) -> Value {
    json!({"type": format!("response.{name}.delta"), "output_index": index, "delta": delta})
}

/// Reasoning, text with more than ASCII, two calls that interleave, an item of the provider.
fn events() -> Vec<Value> {
    let items = items();
    let item = |what: &str, index: usize| {
        let mut item = items[index].clone();
        if what == "added" {
            item["status"] = json!("in_progress");
            for (field, empty) in [("arguments", json!("")), ("content", json!([]))] {
                if !item[field].is_null() {
                    item[field] = empty;
                }
            }
        }
        json!({"type": format!("response.output_item.{what}"), "output_index": index, "item": item})
    };
    let part = |index: u64| {
        json!({
            "type": "response.reasoning_summary_part.added", "item_id": "rs_1", "output_index": 0,
            "summary_index": index, "part": {"type": "summary_text", "text": ""},
        })
    };
    vec![
        json!({"type": "response.created", "response": envelope("in_progress")}),
        json!({"type": "response.in_progress", "response": envelope("in_progress")}),
        item("added", 0),
        part(0),
        delta("reasoning_summary_text", 0, "hm, "),
        delta("reasoning_summary_text", 0, "yes"),
        part(1),
        delta("reasoning_summary_text", 0, "so"),
        item("done", 0),
        item("added", 1),
        json!({"type": "response.content_part.added", "output_index": 1}),
        delta("output_text", 1, "grüß "),
        delta("output_text", 1, "dich 🦀"),
        json!({"type": "response.output_text.done", "output_index": 1, "text": "grüß dich 🦀"}),
        item("done", 1),
        item("added", 2),
        item("added", 3),
        delta("function_call_arguments", 2, "{\"city\": \"Ber"),
        delta("function_call_arguments", 3, "{}"),
        delta("function_call_arguments", 2, "gen\"}"),
        item("done", 3),
        item("done", 2),
        item("added", 4),
        item("done", 4),
        json!({"type": "response.completed", "response": completed()}),
    ]
}

fn stream(events: &[Value]) -> String {
    events.iter().map(event).collect()
}

fn asked() -> ModelId {
    ModelId::new("openai", "gpt-x")
}

fn opaque(data: Value) -> Block {
    Block::Opaque { protocol: PROTOCOL.into(), model: asked(), data }
}

fn expected() -> Reply {
    let items = items();
    let turn = Turn::new([
        Block::Reasoning("hm, yes\n\nso".into()),
        opaque(items[0].clone()),
        "grüß dich 🦀".into(),
        opaque(json!({"type": "message", "phase": "commentary"})),
        ToolCall::new("call_1", "weather", "{\"city\": \"Bergen\"}").into(),
        ToolCall::new("call_2", "now", "{}").into(),
        opaque(items[4].clone()),
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

async fn of(events: &[Value]) -> Result<Reply, LlmError> {
    streamed(vec![stream(events).as_bytes()]).await
}

#[tokio::test]
async fn a_stream_folds_to_the_same_reply_however_it_is_cut() {
    check::same_however_cut(&stream(&events()), &check::SSE, &expected(), streamed).await;
}

#[tokio::test]
async fn a_stream_that_ends_early_is_an_error_wherever_it_ends() {
    let stream = stream(&events());
    let end = stream.find("event: response.completed").unwrap();
    for at in (0..end).step_by(7).chain([end]) {
        let error = streamed(vec![&stream.as_bytes()[..at]]).await.unwrap_err();
        assert_eq!(error.kind(), LlmErrorKind::Stream, "at {at}");
        assert!(error.is_retryable());
    }
}

#[tokio::test]
async fn a_failed_response_and_an_error_event_are_the_error_of_the_call() {
    let cases = [
        ("server_error", LlmErrorKind::Unavailable),
        ("rate_limit_exceeded", LlmErrorKind::RateLimited { retry_after: None }),
        ("server_is_overloaded", LlmErrorKind::Overloaded),
        ("insufficient_quota", LlmErrorKind::Auth),
        ("context_length_exceeded", LlmErrorKind::ContextLength),
        ("invalid_prompt", LlmErrorKind::InvalidRequest),
        ("image_too_large", LlmErrorKind::InvalidRequest),
        ("new_error", LlmErrorKind::Stream),
    ];
    for (code, kind) in cases {
        let error = json!({"code": code, "message": "the secret prompt"});
        let mut failed = envelope("failed");
        failed["error"] = error.clone();
        let whole = response(&asked(), failed.to_string().as_bytes()).unwrap_err();
        let failed = json!({"type": "response.failed", "response": failed});
        let event = json!({"type": "error", "code": code, "message": "the secret prompt"});
        // As some servers send it.
        let nested = json!({"type": "error", "error": error});
        for error in [
            whole,
            of(&[events()[..12].to_vec(), vec![failed]].concat()).await.unwrap_err(),
            of(&[events()[..12].to_vec(), vec![event]].concat()).await.unwrap_err(),
            of(&[nested]).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), kind, "{code}");
            assert!(!format!("{error:?} {error}").contains("secret prompt"));
        }
    }
}

#[tokio::test]
async fn what_does_not_follow_the_protocol_is_a_bad_reply() {
    let added =
        |item| json!({"type": "response.output_item.added", "output_index": 0, "item": item});
    let bad = [
        delta("function_call_arguments", 3, "{"),
        added(json!({"type": "function_call", "name": "t"})),
        added(json!({"type": "function_call", "call_id": "c", "name": ""})),
        json!({"type": "response.completed", "response": {}}),
    ];
    for event in bad {
        let error = of(std::slice::from_ref(&event)).await.unwrap_err();
        assert_eq!(error.kind(), LlmErrorKind::BadReply, "{event}");
    }
    let error = streamed(vec![&b"data: not json\n\n"[..]]).await.unwrap_err();
    assert_eq!(error.kind(), LlmErrorKind::BadReply);
    for body in ["{}", "[]", "<html>", "{\"object\":\"response\",\"status\":\"in_progress\"}"] {
        let error = response(&asked(), body.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), LlmErrorKind::BadReply, "{body}");
    }
}

#[tokio::test]
async fn calls_have_any_index_and_malformed_arguments_are_kept_byte_for_byte() {
    let call = |arguments: &str| json!({"type": "function_call", "call_id": "c", "name": "t", "arguments": arguments});
    let item = |what: &str, item| json!({"type": format!("response.output_item.{what}"), "output_index": 1_u64 << 40, "item": item});
    let end = json!({"type": "response.completed", "response": envelope("completed")});
    let expected = Turn::new([ToolCall::new("c", "t", "{\"n\": \n1,,").into()]);
    let streams = [
        vec![
            item("added", call("")),
            delta("function_call_arguments", 1 << 40, "{\"n\": "),
            delta("function_call_arguments", 1 << 40, "\n1,,"),
            item("done", call("{\"n\": \n1,,")),
        ],
        // Without parts, as a gateway may send it.
        vec![item("added", call("")), item("done", call("{\"n\": \n1,,"))],
    ];
    for mut events in streams {
        events.push(end.clone());
        assert_eq!(of(&events).await.unwrap().turn, expected);
    }
}

fn whole(body: &Value) -> Result<Reply, LlmError> {
    check::whole(asked(), response(&asked(), body.to_string().as_bytes())?, &CallCx::detached())
}

#[test]
fn a_reply_in_one_piece_is_the_same_as_in_parts() {
    assert_eq!(whole(&completed()).unwrap(), expected());
}

#[test]
fn reasoning_that_cannot_go_back_is_not_kept_for_it() {
    let mut response = envelope("completed");
    let summary = json!([{"type": "summary_text", "text": "hm"}]);
    response["output"] = json!([{"id": "rs_1", "type": "reasoning", "summary": summary}]);
    assert_eq!(whole(&response).unwrap().turn, Turn::new([Block::Reasoning("hm".into())]));
}

#[tokio::test]
async fn stop_reasons_and_refusals() {
    let incomplete = |reason: &str| {
        let mut response = envelope("incomplete");
        response["incomplete_details"] = json!({"reason": reason});
        response
    };
    let cases = [
        (envelope("completed"), StopReason::End),
        (incomplete("max_output_tokens"), StopReason::MaxTokens),
        (incomplete("content_filter"), StopReason::ContentFilter),
        (incomplete("later"), StopReason::Other("later".into())),
        (envelope("incomplete"), StopReason::Other("incomplete".into())),
    ];
    for (response, reason) in cases {
        let reply = whole(&response).unwrap();
        assert_eq!((reply.stop, reply.turn.blocks.len()), (reason.clone(), 0));
        let name = format!("response.{}", response["status"].as_str().unwrap());
        let reply = of(&[json!({"type": name, "response": response})]).await.unwrap();
        assert_eq!(reply.stop, reason);
    }
    let mut refused = envelope("completed");
    let refusal = json!([{"type": "refusal", "refusal": "I cannot"}]);
    refused["output"] = json!([{"type": "message", "role": "assistant", "content": refusal}]);
    let end = json!({"type": "response.completed", "response": refused});
    let events = [delta("refusal", 0, "I can"), delta("refusal", 0, "not"), end];
    for reply in [whole(&refused).unwrap(), of(&events).await.unwrap()] {
        assert_eq!((reply.text().as_deref(), reply.stop), (Some("I cannot"), StopReason::Refusal));
    }
}
