//! The Responses API: <https://platform.openai.com/docs/api-reference/responses>, the pages "Create a
//! model response" and "Streaming events", whose source is `openapi.yaml` of
//! <https://github.com/openai/openai-openapi>, as of 21 August 2026.

use super::openai::{body, error, format_fault, rejection, unauthorized, usage};
use harness::llm::{Block, Delta, Llm, LlmErrorKind, Reply, StopReason};
use harness::testing::{Wire, WireRequest};
use harness_providers::OpenAiResponses;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

pub(crate) struct Responses;

impl Wire for Responses {
    fn adapter(&self, url: &str, key: &str) -> Arc<dyn Llm> {
        Arc::new(OpenAiResponses::new("gpt-x", key).base_url(url))
    }

    fn protocol(&self) -> &'static str {
        "openai-responses"
    }

    fn whole(&self, reply: &Reply) -> String {
        let item = |block: &Block| match block {
            Block::Text(text) => message(json!([part(&reply.stop, text)])),
            Block::Call { call, .. } => {
                item_of_call(call.id.as_str(), call.name.as_str(), &call.arguments)
            }
            other => panic!("the suite has no {other:?}"),
        };
        let output: Vec<_> = reply.turn.blocks.iter().map(item).collect();
        let mut response = response(&reply.stop);
        response["output"] = json!(output);
        response["usage"] = usage(reply.usage, "input_tokens", "output_tokens");
        response.to_string()
    }

    fn frames(&self, parts: &[Delta]) -> Vec<String> {
        let stop = parts.iter().find_map(|part| match part {
            Delta::Stop(reason) => Some(reason.clone()),
            _ => None,
        });
        let stop = stop.unwrap_or(StopReason::End);
        let mut begun = response(&StopReason::End);
        begun["status"] = json!("in_progress");
        let mut frames = Frames::default();
        frames.push(json!({"type": "response.created", "response": begun}));
        frames.push(json!({"type": "response.in_progress", "response": begun}));
        // Calls have their own indexes, so the message has one that no call has.
        const TEXT: u64 = 77;
        let mut text = String::new();
        let mut calls: HashMap<u64, (String, String, String)> = HashMap::new();
        let mut counts = Value::Null;
        for delta in parts {
            if !text.is_empty() && !matches!(delta, Delta::Text(_)) {
                frames.text_end(TEXT, &stop, &std::mem::take(&mut text));
            }
            match delta {
                Delta::Text(more) => {
                    if text.is_empty() {
                        frames.item("added", TEXT, message(json!([])));
                        frames.push(json!({
                            "type": "response.content_part.added", "item_id": "msg_1",
                            "output_index": TEXT, "content_index": 0, "part": part(&stop, ""),
                        }));
                    }
                    text.push_str(more);
                    frames.push(json!({
                        "type": format!("response.{}.delta", kind(&stop)), "item_id": "msg_1",
                        "output_index": TEXT, "content_index": 0, "delta": more,
                    }));
                }
                Delta::CallStart { index, id, name } => {
                    let call = (id.to_string(), name.to_string(), String::new());
                    frames.item("added", *index, item_of_call(&call.0, &call.1, ""));
                    calls.insert(*index, call);
                }
                Delta::CallArguments { index, fragment } => {
                    calls.get_mut(index).unwrap().2.push_str(fragment);
                    frames.push(json!({
                        "type": "response.function_call_arguments.delta", "item_id": "fc_1",
                        "output_index": index, "delta": fragment,
                    }));
                }
                Delta::CallEnd { index } => {
                    let (id, name, arguments) = &calls[index];
                    frames.push(json!({
                        "type": "response.function_call_arguments.done", "item_id": "fc_1",
                        "output_index": index, "name": name, "arguments": arguments,
                    }));
                    frames.item("done", *index, item_of_call(id, name, arguments));
                }
                Delta::Usage(known) => counts = usage(*known, "input_tokens", "output_tokens"),
                _ => {}
            }
        }
        let mut last = response(&stop);
        last["usage"] = counts;
        let name = format!("response.{}", last["status"].as_str().unwrap());
        frames.push(json!({"type": name, "response": last}));
        frames.0
    }

    fn rejects(&self, request: &WireRequest) -> Option<(u16, String)> {
        unauthorized(request).or_else(|| Some(rejection(rejected(request)?)))
    }

    fn error(&self, kind: LlmErrorKind, message: &str) -> Option<(u16, String)> {
        error(kind, message).map(|(status, error)| (status, body(&error)))
    }

    fn error_frame(&self, kind: LlmErrorKind, message: &str) -> Option<String> {
        let (_, error) = error(kind, message)?;
        let mut frames = Frames::default();
        if kind == LlmErrorKind::Unavailable {
            let mut failed = response(&StopReason::End);
            failed["status"] = json!("failed");
            failed["error"] = json!({"code": error["code"], "message": message});
            frames.push(json!({"type": "response.failed", "response": failed}));
        } else {
            frames.push(json!({
                "type": "error", "code": error["code"], "message": message, "param": null,
            }));
        }
        frames.0.pop()
    }

    fn opaque(&self, mark: &str) -> Option<Value> {
        let item = json!({"id": "rs_1", "type": "reasoning", "summary": []});
        let mut item = item;
        item["encrypted_content"] = json!(mark);
        Some(item)
    }
}

#[derive(Default)]
struct Frames(Vec<String>);

impl Frames {
    fn push(&mut self, mut event: Value) {
        event["sequence_number"] = json!(self.0.len());
        self.0.push(format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()));
    }

    fn item(&mut self, what: &str, index: u64, item: Value) {
        let name = format!("response.output_item.{what}");
        self.push(json!({"type": name, "output_index": index, "item": item}));
    }

    fn text_end(&mut self, index: u64, stop: &StopReason, text: &str) {
        let part = part(stop, text);
        let mut done = json!({
            "type": format!("response.{}.done", kind(stop)), "item_id": "msg_1",
            "output_index": index, "content_index": 0,
        });
        let field = if *stop == StopReason::Refusal { "refusal" } else { "text" };
        done[field] = json!(text);
        self.push(done);
        self.push(json!({
            "type": "response.content_part.done", "item_id": "msg_1", "output_index": index,
            "content_index": 0, "part": part,
        }));
        self.item("done", index, message(json!([part])));
    }
}

/// What the text of a reply is called.
fn kind(stop: &StopReason) -> &'static str {
    if *stop == StopReason::Refusal { "refusal" } else { "output_text" }
}

fn part(stop: &StopReason, text: &str) -> Value {
    match stop {
        StopReason::Refusal => json!({"type": "refusal", "refusal": text}),
        _ => json!({"type": "output_text", "text": text, "annotations": []}),
    }
}

fn message(content: Value) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
        "content": content,
    })
}

fn item_of_call(id: &str, name: &str, arguments: &str) -> Value {
    json!({
        "id": "fc_1", "type": "function_call", "status": "completed", "call_id": id,
        "name": name, "arguments": arguments,
    })
}

fn response(stop: &StopReason) -> Value {
    let (status, details) = match stop {
        StopReason::End | StopReason::ToolCalls | StopReason::Refusal => ("completed", Value::Null),
        StopReason::MaxTokens => ("incomplete", json!({"reason": "max_output_tokens"})),
        StopReason::ContentFilter => ("incomplete", json!({"reason": "content_filter"})),
        other => panic!("the suite has no {other:?}"),
    };
    json!({
        "id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-x",
        "status": status, "incomplete_details": details, "error": null, "output": [],
        "store": false, "usage": null,
    })
}

/// What the vendor rejects of a request.
fn rejected(request: &WireRequest) -> Option<&'static str> {
    let body = &request.body;
    if request.path != "/responses" {
        return Some("no such path");
    }
    for name in ["messages", "stop", "seed", "max_tokens", "response_format", "stream_options"] {
        if !body[name].is_null() {
            return Some("Unknown parameter");
        }
    }
    if body["max_output_tokens"].as_u64().is_some_and(|tokens| tokens < 16) {
        return Some("max_output_tokens: below minimum value");
    }
    if body["store"] != false {
        return Some("this account retains nothing");
    }
    if let Some(what) = format_fault(&body["text"]["format"]) {
        return Some(what);
    }
    let input = body["input"].as_array().map(Vec::as_slice).unwrap_or_default();
    if input.is_empty() {
        return Some("input: is empty");
    }
    let mut open: Vec<&str> = Vec::new();
    for (place, item) in input.iter().enumerate() {
        let id = item["call_id"].as_str().unwrap_or_default();
        match item["type"].as_str() {
            Some("function_call") => {
                let legal = (1..=64).contains(&id.len());
                if !legal || !item["name"].is_string() || !item["arguments"].is_string() {
                    return Some("function_call: invalid");
                }
                open.push(id);
            }
            Some("function_call_output") => {
                let Some(at) = open.iter().position(|open| *open == id) else {
                    return Some("No tool call found for function call output");
                };
                open.remove(at);
                if item["output"].is_null() {
                    return Some("output: missing");
                }
            }
            Some("reasoning") => {
                let next = input.get(place + 1);
                if next.is_none_or(|next| next["role"] == "user") {
                    return Some("reasoning was provided without its required following item");
                }
                if !item["encrypted_content"].is_string() || !item["summary"].is_array() {
                    return Some("Item not found. Items are not persisted when `store` is false");
                }
            }
            None | Some("message") => match item["role"].as_str() {
                Some("user") => {
                    let parts = item["content"].as_array().map(Vec::as_slice).unwrap_or_default();
                    if parts.is_empty() || !parts.iter().all(legal) {
                        return Some("content: invalid part");
                    }
                }
                Some("assistant") if item["content"].is_string() => {}
                _ => return Some("message: invalid"),
            },
            _ => return Some("input: invalid type"),
        }
    }
    (!open.is_empty()).then_some("No tool output found for function call")
}

fn legal(part: &Value) -> bool {
    match part["type"].as_str() {
        Some("input_text") => part["text"].is_string(),
        Some("input_image") => part["image_url"].is_string(),
        Some("input_file") => {
            part["file_url"].is_string()
                || part["filename"].is_string()
                    && part["file_data"].as_str().is_some_and(|data| data.starts_with("data:"))
        }
        _ => false,
    }
}
