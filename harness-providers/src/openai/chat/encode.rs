//! Requests as JSON.

use super::super::{CallIds, PDF, Sent, effort, format, outcome_content, parts, simple};
use super::{Dialect, PROTOCOL};
use crate::decimal::decimal;
use crate::failure::unsupported;
use crate::merge::merge_options;
use harness::llm::{Block, Entry, LlmError, ModelId, Request, ToolChoice, Turn};
use serde_json::{Map, Value, json};

/// The fields of a body that options cannot replace. There is one choice in a reply.
const RESERVED: &[&str] = &["messages", "model", "n", "stream", "stream_options"];

/// The most stop sequences that OpenAI takes.
const MOST_STOPS: usize = 4;

/// The longest id of a call that OpenAI takes.
const LONGEST_ID: usize = 40;

/// The body of a request.
pub(super) fn body(
    model: &ModelId,
    dialect: Dialect,
    request: &Request<'_>,
    streams: bool,
) -> Result<Value, LlmError> {
    let mut body = Map::new();
    body.insert("model".into(), json!(model.model()));
    body.insert("messages".into(), Value::Array(messages(model, request)?));
    if streams {
        body.insert("stream".into(), json!(true));
        // Without it a reply in parts has no usage.
        body.insert("stream_options".into(), json!({"include_usage": true}));
    }
    tools(request, &mut body);
    if let Some(tokens) = request.max_tokens {
        let name = match dialect {
            Dialect::OpenAi => "max_completion_tokens",
            Dialect::Compatible => "max_tokens",
        };
        body.insert(name.into(), json!(tokens));
    }
    if let Some(temperature) = request.temperature {
        body.insert("temperature".into(), decimal(temperature));
    }
    if let Some(seed) = request.seed {
        body.insert("seed".into(), json!(seed));
    }
    if !request.stop_sequences.is_empty() {
        if dialect == Dialect::OpenAi && request.stop_sequences.len() > MOST_STOPS {
            return Err(unsupported(model, "the protocol takes four stop sequences at most"));
        }
        body.insert("stop".into(), json!(request.stop_sequences));
    }
    if let Some(asked) = request.effort {
        body.insert("reasoning_effort".into(), json!(effort(model, asked)?));
    }
    if let Some(format) = format(request) {
        let format = json!({"type": "json_schema", "json_schema": format});
        body.insert("response_format".into(), format);
    }
    merge_options(&mut body, request, PROTOCOL, model, RESERVED)?;
    Ok(Value::Object(body))
}

fn tools(request: &Request<'_>, body: &mut Map<String, Value>) {
    if request.tools.is_empty() {
        return;
    }
    let tool = |tool: &harness::llm::ToolSpec| {
        json!({"type": "function", "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.input_schema,
        }})
    };
    body.insert("tools".into(), request.tools.iter().map(tool).collect());
    let choice = match request.tool_choice {
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Tool(name) => json!({"type": "function", "function": {"name": name}}),
        _ => return,
    };
    body.insert("tool_choice".into(), choice);
}

/// The messages. The outcomes of a turn's calls follow it, each in a message of its own.
fn messages(model: &ModelId, request: &Request<'_>) -> Result<Vec<Value>, LlmError> {
    let mut messages = Vec::new();
    if let Some(system) = request.system.filter(|text| !text.trim().is_empty()) {
        messages.push(json!({"role": "system", "content": system}));
    }
    let mut ids = CallIds::new(LONGEST_ID);
    for entry in request.transcript.transcript().entries() {
        match entry {
            Entry::User(content) => {
                let content = parts(model, content, shape)?;
                if !content.is_empty() {
                    messages.push(json!({"role": "user", "content": simple(content)}));
                }
            }
            Entry::Assistant(turn) => assistant(model, turn, &mut ids, &mut messages)?,
            _ => return Err(unsupported(model, "the protocol does not know this entry")),
        }
    }
    Ok(messages)
}

fn shape(model: &ModelId, sent: Sent<'_>) -> Result<Value, LlmError> {
    Ok(match sent {
        Sent::Text(text) => json!({"type": "text", "text": text}),
        Sent::Image(url) => json!({"type": "image_url", "image_url": {"url": url}}),
        Sent::File { media_type: PDF, name, data } => {
            json!({"type": "file", "file": {"filename": name, "file_data": data}})
        }
        Sent::File { .. } | Sent::FileAt(_) => {
            return Err(unsupported(model, "the protocol takes documents inline and as PDF only"));
        }
    })
}

fn assistant<'a>(
    model: &ModelId,
    turn: &'a Turn,
    ids: &mut CallIds<'a>,
    messages: &mut Vec<Value>,
) -> Result<(), LlmError> {
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for block in &turn.blocks {
        let Block::Call { call, outcome } = block else { continue };
        let id = ids.of(&call.id);
        calls.push(json!({
            "id": id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }));
        let Some(outcome) = outcome else { continue };
        let content = parts(model, &outcome_content(outcome), shape)?;
        if content.iter().any(|part| part["type"] != "text") {
            return Err(unsupported(
                model,
                "the protocol takes text as the outcome of a tool only",
            ));
        }
        results.push(json!({"role": "tool", "tool_call_id": id, "content": simple(content)}));
    }
    let mut message = Map::new();
    message.insert("role".into(), json!("assistant"));
    match turn.text().filter(|text| !text.is_empty()) {
        Some(text) => message.insert("content".into(), json!(text)),
        // It has nothing to say, and the protocol rejects it.
        None if calls.is_empty() => return Ok(()),
        None => message.insert("content".into(), Value::Null),
    };
    if !calls.is_empty() {
        message.insert("tool_calls".into(), Value::Array(calls));
    }
    messages.push(Value::Object(message));
    messages.append(&mut results);
    Ok(())
}

#[cfg(test)]
mod tests;
