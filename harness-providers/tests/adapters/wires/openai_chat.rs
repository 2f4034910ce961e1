//! The Chat Completions API: <https://platform.openai.com/docs/api-reference/chat>, the pages "Create
//! chat completion" and "Streaming", whose source is `openapi.yaml` of
//! <https://github.com/openai/openai-openapi>, as of 21 August 2026.

use super::data;
use super::openai::{body, error, format_fault, rejection, unauthorized, usage};
use harness::llm::{Block, Delta, Llm, LlmErrorKind, Reply, StopReason};
use harness::testing::{Wire, WireRequest};
use harness_providers::OpenAiChat;
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) struct Completions {
    /// As a server that is not OpenAI.
    pub(crate) compatible: bool,
}

impl Wire for Completions {
    fn adapter(&self, url: &str, key: &str) -> Arc<dyn Llm> {
        Arc::new(match self.compatible {
            true => OpenAiChat::compatible("m-1", url).key(key),
            false => OpenAiChat::new("gpt-x", key).base_url(url),
        })
    }

    fn protocol(&self) -> &'static str {
        "openai-chat"
    }

    fn whole(&self, reply: &Reply) -> String {
        let call = |block: &Block| match block {
            Block::Call { call, .. } => Some(json!({
                "id": call.id, "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            })),
            _ => None,
        };
        let calls: Vec<_> = reply.turn.blocks.iter().filter_map(call).collect();
        let mut message = json!({"role": "assistant", "content": null, "refusal": null});
        message[field(&reply.stop)] = json!(reply.text());
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        json!({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-x",
            "choices": [{
                "index": 0, "message": message, "logprobs": null,
                "finish_reason": finish(&reply.stop),
            }],
            "usage": usage(reply.usage, "prompt_tokens", "completion_tokens"),
        })
        .to_string()
    }

    fn frames(&self, parts: &[Delta]) -> Vec<String> {
        let stop = parts.iter().find_map(|part| match part {
            Delta::Stop(reason) => Some(reason.clone()),
            _ => None,
        });
        let stop = stop.unwrap_or(StopReason::End);
        let mut frames = vec![chunk(json!({"role": "assistant", "content": "", "refusal": null}))];
        let mut counts = Value::Null;
        for part in parts {
            match part {
                Delta::Text(text) => frames.push(chunk(json!({field(&stop): text}))),
                Delta::CallStart { index, id, name } => {
                    let call = json!({
                        "index": index, "id": id, "type": "function",
                        "function": {"name": name, "arguments": ""},
                    });
                    frames.push(chunk(json!({"tool_calls": [call]})));
                }
                Delta::CallArguments { index, fragment } => {
                    let call = json!({"index": index, "function": {"arguments": fragment}});
                    frames.push(chunk(json!({"tool_calls": [call]})));
                }
                Delta::Usage(known) => {
                    counts = usage(*known, "prompt_tokens", "completion_tokens");
                }
                _ => {}
            }
        }
        let mut last = event(json!([{"index": 0, "delta": {}, "finish_reason": finish(&stop)}]));
        frames.push(data(&last));
        last["choices"] = json!([]);
        last["usage"] = counts;
        frames.push(data(&last));
        frames.push("data: [DONE]\n\n".to_owned());
        frames
    }

    fn rejects(&self, request: &WireRequest) -> Option<(u16, String)> {
        unauthorized(request).or_else(|| Some(rejection(rejected(request, self.compatible)?)))
    }

    fn error(&self, kind: LlmErrorKind, message: &str) -> Option<(u16, String)> {
        error(kind, message).map(|(status, error)| (status, body(&error)))
    }

    fn error_frame(&self, kind: LlmErrorKind, message: &str) -> Option<String> {
        error(kind, message).map(|(_, error)| data(&json!({"error": error})))
    }
}

fn event(choices: Value) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-x",
        "choices": choices, "usage": null,
    })
}

fn chunk(delta: Value) -> String {
    data(&event(json!([{"index": 0, "delta": delta, "finish_reason": null}])))
}

/// Where the text of a reply is.
fn field(stop: &StopReason) -> &'static str {
    if *stop == StopReason::Refusal { "refusal" } else { "content" }
}

fn finish(stop: &StopReason) -> &'static str {
    match stop {
        StopReason::End | StopReason::Refusal => "stop",
        StopReason::ToolCalls => "tool_calls",
        StopReason::MaxTokens => "length",
        StopReason::ContentFilter => "content_filter",
        other => panic!("the suite has no {other:?}"),
    }
}

/// What the vendor rejects of a request.
fn rejected(request: &WireRequest, compatible: bool) -> Option<&'static str> {
    let body = &request.body;
    if request.path != "/chat/completions" {
        return Some("no such path");
    }
    if !compatible && !body["max_tokens"].is_null() {
        return Some("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.");
    }
    if body["stream"] != true && !body["stream_options"].is_null() {
        return Some("stream_options is only allowed when stream is enabled");
    }
    if body["stop"].as_array().is_some_and(|stops| stops.len() > 4) {
        return Some("stop: array too long");
    }
    if let Some(what) = format_fault(&body["response_format"]["json_schema"]) {
        return Some(what);
    }
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    if messages.is_empty() {
        return Some("messages: empty array");
    }
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        let content = &message["content"];
        let blank = content.is_null() || content.as_array().is_some_and(Vec::is_empty);
        if message["role"] == "tool" {
            let Some(place) = open.iter().position(|id| message["tool_call_id"] == **id) else {
                return Some("a message of 'tool' must follow its 'tool_calls'");
            };
            open.remove(place);
        } else if !open.is_empty() {
            return Some("'tool_calls' must be followed by messages for each 'tool_call_id'");
        }
        match message["role"].as_str() {
            Some("system" | "tool") if !content.is_string() => return Some("content: no text"),
            Some("system" | "tool") => {}
            Some("user") if blank => return Some("content: is empty"),
            Some("user") => {
                if content.as_array().into_iter().flatten().any(|part| !legal(part)) {
                    return Some("content: invalid part");
                }
            }
            Some("assistant") => {
                let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
                if calls.is_empty() && (blank || !message["tool_calls"].is_null()) {
                    return Some("content: expected a string, got null");
                }
                for call in calls {
                    let id = call["id"].as_str().unwrap_or_default();
                    let function = &call["function"];
                    if !(1..=40).contains(&id.len())
                        || call["type"] != "function"
                        || !function["name"].is_string()
                        || !function["arguments"].is_string()
                    {
                        return Some("tool_calls: invalid");
                    }
                    open.push(id);
                }
            }
            _ => return Some("role: invalid"),
        }
    }
    (!open.is_empty()).then_some("'tool_calls' must be followed by messages")
}

fn legal(part: &Value) -> bool {
    match part["type"].as_str() {
        Some("text") => part["text"].is_string(),
        Some("image_url") => part["image_url"]["url"].as_str().is_some_and(|url| {
            url.starts_with("https://") || url.starts_with("data:image/png;base64,")
        }),
        Some("file") => {
            let data = part["file"]["file_data"].as_str().unwrap_or_default();
            part["file"]["filename"].is_string() && data.starts_with("data:application/pdf;base64,")
        }
        _ => false,
    }
}
