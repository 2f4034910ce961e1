//! The Messages API: <https://platform.claude.com/docs>, the pages "Messages", "Streaming messages",
//! "Errors" and "Tool use", as of November 2026.

use harness::llm::{Block, Delta, Llm, LlmErrorKind, Reply, StopReason, Usage};
use harness::testing::{Wire, WireRequest};
use harness_providers::Anthropic;
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) struct Messages;

impl Wire for Messages {
    fn adapter(&self, url: &str, key: &str) -> Arc<dyn Llm> {
        Arc::new(Anthropic::new("claude-x", key).base_url(url))
    }

    fn protocol(&self) -> &'static str {
        "anthropic-messages"
    }

    fn whole(&self, reply: &Reply) -> String {
        let block = |block: &Block| match block {
            Block::Text(text) => json!({"type": "text", "text": text}),
            Block::Call { call, .. } => json!({
                "type": "tool_use", "id": call.id, "name": call.name, "input": call.json().unwrap(),
            }),
            other => panic!("the suite has no {other:?}"),
        };
        let content: Vec<_> = reply.turn.blocks.iter().map(block).collect();
        let mut message = message(content, reply.usage);
        message["stop_reason"] = json!(stop(&reply.stop));
        message.to_string()
    }

    fn frames(&self, parts: &[Delta]) -> Vec<String> {
        let usage = parts.iter().find_map(|part| match part {
            Delta::Usage(usage) => Some(*usage),
            _ => None,
        });
        let usage = usage.unwrap_or_default();
        let mut frames = vec![event(json!({
            "type": "message_start",
            "message": message(Vec::new(), Usage { output: Some(1), ..usage }),
        }))];
        // Calls have their own indexes, so text has one that no call has.
        const TEXT: u64 = 77;
        let mut in_text = false;
        let start = |index, block: Value| {
            event(json!({"type": "content_block_start", "index": index, "content_block": block}))
        };
        let delta = |index, delta: Value| {
            event(json!({"type": "content_block_delta", "index": index, "delta": delta}))
        };
        let end = |index| event(json!({"type": "content_block_stop", "index": index}));
        for part in parts {
            if in_text && !matches!(part, Delta::Text(_)) {
                frames.push(end(&TEXT));
                in_text = false;
            }
            match part {
                Delta::Text(text) => {
                    if !in_text {
                        frames.push(start(&TEXT, json!({"type": "text", "text": ""})));
                        in_text = true;
                    }
                    frames.push(delta(&TEXT, json!({"type": "text_delta", "text": text})));
                }
                Delta::CallStart { index, id, name } => {
                    let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
                    frames.push(start(index, block));
                }
                Delta::CallArguments { index, fragment } => {
                    let more = json!({"type": "input_json_delta", "partial_json": fragment});
                    frames.push(delta(index, more));
                }
                Delta::CallEnd { index } => frames.push(end(index)),
                Delta::Stop(reason) => {
                    frames.push(event(json!({
                        "type": "message_delta",
                        "delta": {"stop_reason": stop(reason), "stop_sequence": null},
                        "usage": {"output_tokens": usage.output},
                    })));
                    frames.push(event(json!({"type": "message_stop"})));
                }
                _ => {}
            }
        }
        frames
    }

    fn rejects(&self, request: &WireRequest) -> Option<(u16, String)> {
        if request.header("x-api-key").is_none_or(str::is_empty) {
            return Some(error(401, "authentication_error", "x-api-key header is required"));
        }
        let what = rejected(request)?;
        Some(error(400, "invalid_request_error", what))
    }

    fn error(&self, kind: LlmErrorKind, message: &str) -> Option<(u16, String)> {
        let (status, name) = match kind {
            LlmErrorKind::RateLimited { .. } => (429, "rate_limit_error"),
            LlmErrorKind::Overloaded => (529, "overloaded_error"),
            LlmErrorKind::Auth => (401, "authentication_error"),
            LlmErrorKind::InvalidRequest => (400, "invalid_request_error"),
            LlmErrorKind::UnknownModel => (404, "not_found_error"),
            LlmErrorKind::Unavailable => (500, "api_error"),
            LlmErrorKind::ContextLength => {
                let long = format!("prompt is too long: 9 tokens > 8 maximum {message}");
                return Some(error(400, "invalid_request_error", &long));
            }
            _ => return None,
        };
        Some(error(status, name, message))
    }

    fn error_frame(&self, kind: LlmErrorKind, message: &str) -> Option<String> {
        let (_, body) = self.error(kind, message)?;
        Some(format!("event: error\ndata: {body}\n\n"))
    }

    fn has_stop(&self, reason: &StopReason) -> bool {
        *reason != StopReason::ContentFilter
    }

    fn reported(&self, usage: Usage) -> Usage {
        Usage { reasoning: None, ..usage }
    }

    fn opaque(&self, mark: &str) -> Option<Value> {
        Some(json!({"type": "thinking", "signature": mark}))
    }
}

fn event(json: Value) -> String {
    format!("event: {}\ndata: {json}\n\n", json["type"].as_str().unwrap())
}

fn message(content: Vec<Value>, usage: Usage) -> Value {
    let cached = usage.cache_read.unwrap_or(0) + usage.cache_write.unwrap_or(0);
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x",
        "content": content, "stop_reason": null, "stop_sequence": null,
        "usage": {
            "input_tokens": usage.input.unwrap_or(0) - cached,
            "cache_read_input_tokens": usage.cache_read,
            "cache_creation_input_tokens": usage.cache_write,
            "output_tokens": usage.output,
        },
    })
}

fn stop(reason: &StopReason) -> &'static str {
    match reason {
        StopReason::End => "end_turn",
        StopReason::ToolCalls => "tool_use",
        StopReason::MaxTokens => "max_tokens",
        StopReason::Refusal => "refusal",
        other => panic!("the suite has no {other:?}"),
    }
}

fn error(status: u16, name: &str, message: &str) -> (u16, String) {
    let error = json!({"type": "error", "error": {"type": name, "message": message}});
    (status, error.to_string())
}

/// What the vendor rejects of a request.
fn rejected(request: &WireRequest) -> Option<&'static str> {
    if request.path != "/v1/messages" {
        return Some("no such path");
    }
    if request.header("anthropic-version") != Some("2023-06-01") {
        return Some("anthropic-version: header is required");
    }
    let body = &request.body;
    if !body["max_tokens"].is_u64() {
        return Some("max_tokens: Field required");
    }
    let messages = body["messages"].as_array()?;
    let mut called: Vec<&str> = Vec::new();
    let mut used: Vec<&str> = Vec::new();
    let mut last = "assistant";
    for message in messages {
        let role = message["role"].as_str().unwrap_or_default();
        let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        if role == last || blocks.is_empty() {
            return Some("messages: roles must alternate and content must not be empty");
        }
        last = if role == "user" { "user" } else { "assistant" };
        let of = |name: &str, field: &str| -> Vec<&str> {
            let of_type = blocks.iter().filter(|block| block["type"] == name);
            of_type.filter_map(|block| block[field].as_str()).collect()
        };
        if of("tool_result", "tool_use_id") != called {
            return Some("messages: `tool_use` ids without `tool_result` blocks right after");
        }
        called = of("tool_use", "id");
        for id in &called {
            if used.contains(id) {
                return Some("messages: `tool_use` ids must be unique");
            }
            used.push(id);
        }
        let ends = blocks.last().map(|block| &block["type"]);
        if ends.is_some_and(|name| name == "thinking" || name == "redacted_thinking") {
            return Some("messages: The final block in an assistant message cannot be `thinking`");
        }
        for block in blocks {
            let blank = block["text"].as_str().is_some_and(|text| text.trim().is_empty());
            if blank || (block["type"] == "tool_use" && !block["input"].is_object()) {
                return Some("messages: content is blank, or input is no object");
            }
        }
    }
    None
}
