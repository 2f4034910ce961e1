//! The chat API of Ollama: `docs/api.md`, `docs/api/errors.mdx`, `api/types.go` and `server/routes.go` of
//! github.com/ollama/ollama, as of 21 August 2026.

use harness::llm::{Block, Delta, Llm, LlmErrorKind, Reply, StopReason, Usage};
use harness::testing::{Wire, WireRequest};
use harness_providers::Ollama;
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) struct Chat;

impl Wire for Chat {
    fn adapter(&self, url: &str, key: &str) -> Arc<dyn Llm> {
        Arc::new(Ollama::new("llama3.2").key(key).base_url(url))
    }

    fn protocol(&self) -> &'static str {
        "ollama-chat"
    }

    fn whole(&self, reply: &Reply) -> String {
        let calls = reply.calls().enumerate();
        let calls = calls.map(|(at, call)| function(at, call.name.as_str(), &call.arguments));
        let text = reply.text().unwrap_or_default();
        assert!(!reply.turn.blocks.iter().any(|block| matches!(block, Block::Opaque { .. })));
        let mut message = message(&text, calls.collect());
        finish(&mut message, &reply.stop, reply.usage);
        message.to_string()
    }

    fn frames(&self, parts: &[Delta]) -> Vec<String> {
        let mut frames = Vec::new();
        let mut usage = Usage::default();
        let mut calls: Vec<(u64, String, String)> = Vec::new();
        for part in parts {
            let line = match part {
                Delta::Text(text) => message(text, Vec::new()),
                Delta::CallStart { index, name, .. } => {
                    calls.push((*index, name.to_string(), String::new()));
                    continue;
                }
                Delta::CallArguments { index, fragment } => {
                    let call = calls.iter_mut().find(|(known, ..)| known == index);
                    call.unwrap().2.push_str(fragment);
                    continue;
                }
                Delta::CallEnd { index } => {
                    let at = calls.iter().position(|(known, ..)| known == index).unwrap();
                    let (_, name, arguments) = &calls[at];
                    message("", vec![function(at, name, arguments)])
                }
                Delta::Usage(later) => {
                    usage = *later;
                    continue;
                }
                Delta::Stop(reason) => {
                    let mut last = message("", Vec::new());
                    finish(&mut last, reason, usage);
                    last
                }
                _ => continue,
            };
            frames.push(format!("{line}\n"));
        }
        frames
    }

    fn rejects(&self, request: &WireRequest) -> Option<(u16, String)> {
        Some((400, json!({"error": rejected(request)?}).to_string()))
    }

    fn error(&self, kind: LlmErrorKind, message: &str) -> Option<(u16, String)> {
        let (status, text) = match kind {
            LlmErrorKind::RateLimited { .. } => (429, message.to_owned()),
            LlmErrorKind::Overloaded => (503, format!("server busy, please try again. {message}")),
            LlmErrorKind::Auth => (401, format!("unauthorized {message}")),
            LlmErrorKind::InvalidRequest => (400, message.to_owned()),
            LlmErrorKind::UnknownModel => (404, format!("model '{message}' not found")),
            LlmErrorKind::Unavailable => (500, message.to_owned()),
            LlmErrorKind::ContextLength => {
                (400, format!("the input length exceeds the context length {message}"))
            }
            _ => return None,
        };
        Some((status, json!({"error": text}).to_string()))
    }

    fn error_frame(&self, kind: LlmErrorKind, message: &str) -> Option<String> {
        // An error is a text without a code.
        let shown = matches!(kind, LlmErrorKind::Unavailable);
        shown.then(|| format!("{}\n", json!({"error": message})))
    }

    fn media_type(&self) -> &'static str {
        "application/x-ndjson"
    }

    fn has_stop(&self, reason: &StopReason) -> bool {
        !matches!(reason, StopReason::Refusal | StopReason::ContentFilter)
    }

    fn reported(&self, usage: Usage) -> Usage {
        Usage { cache_read: None, cache_write: None, reasoning: None, ..usage }
    }

    fn has_text_arguments(&self) -> bool {
        false
    }
}

fn message(text: &str, calls: Vec<Value>) -> Value {
    let mut message = json!({"role": "assistant", "content": text});
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    json!({
        "model": "llama3.2",
        "created_at": "2025-07-07T20:22:19.184789Z",
        "message": message,
        "done": false,
    })
}

/// Without an id, which older servers do not have.
fn function(index: usize, name: &str, arguments: &str) -> Value {
    let arguments: Value = serde_json::from_str(arguments).unwrap();
    json!({"function": {"index": index, "name": name, "arguments": arguments}})
}

fn finish(line: &mut Value, stop: &StopReason, usage: Usage) {
    line["done"] = json!(true);
    line["done_reason"] = json!(match stop {
        StopReason::End | StopReason::ToolCalls => "stop",
        StopReason::MaxTokens => "length",
        other => panic!("the suite has no {other:?}"),
    });
    line["total_duration"] = json!(182_242_375);
    line["prompt_eval_count"] = json!(usage.input);
    line["eval_count"] = json!(usage.output);
}

/// What the server rejects of a request: what its types do not decode.
fn rejected(request: &WireRequest) -> Option<&'static str> {
    if request.path != "/api/chat" {
        return Some("no such path");
    }
    let body = &request.body;
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Some("model is required");
    }
    if !body["stream"].is_boolean() {
        return Some("this server streams unless it is asked not to");
    }
    let think = &body["think"];
    let levels = ["low", "medium", "high", "max"];
    if !(think.is_null()
        || think.is_boolean()
        || think.as_str().is_some_and(|t| levels.contains(&t)))
    {
        return Some("think must be a boolean or string (\"high\", \"medium\", \"low\", \"max\")");
    }
    let options = &body["options"];
    if !(options.is_null() || options.is_object())
        || options["seed"].as_u64() > Some(i64::MAX as u64)
    {
        return Some("json: cannot unmarshal into Go struct field ChatRequest.options");
    }
    let mut open: Vec<&Value> = Vec::new();
    for message in body["messages"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let role = message["role"].as_str().unwrap_or_default();
        if !message["content"].is_string()
            || !["system", "user", "assistant", "tool"].contains(&role)
        {
            return Some("json: cannot unmarshal into Go struct field Message.content");
        }
        if role == "tool" {
            // Not what the server checks, but what the prompt of a model relies on.
            if open.is_empty() || open.remove(0) != &message["tool_call_id"] {
                return Some("an outcome belongs to no call, or is not in their order");
            }
        } else if !open.is_empty() {
            return Some("a call has no outcome");
        }
        for call in message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default() {
            if !call["function"]["arguments"].is_object() || !call["function"]["name"].is_string() {
                return Some(
                    "json: cannot unmarshal into Go struct field ToolCallFunction.arguments",
                );
            }
            open.push(&call["id"]);
        }
        let images = message["images"].as_array().map(Vec::as_slice).unwrap_or_default();
        if images.iter().any(|image| image.as_str().is_none_or(|data| data.contains(':'))) {
            return Some("illegal base64 data at input byte 4");
        }
    }
    None
}
