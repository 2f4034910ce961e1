//! Requests as JSON.

use super::PROTOCOL;
use crate::decimal::decimal;
use crate::failure::unsupported;
use crate::merge::merge_options;
use harness::llm::{
    Block, Content, Effort, Entry, Image, LlmError, ModelId, Part, Request, ToolCall, ToolChoice,
    Turn,
};
use serde_json::{Map, Value, json};

/// The fields of a body that options cannot replace.
const RESERVED: &[&str] = &["messages", "model", "stream"];

/// The body of a request.
pub(super) fn body(
    model: &ModelId,
    request: &Request<'_>,
    streams: bool,
) -> Result<Value, LlmError> {
    let mut body = Map::new();
    body.insert("model".into(), json!(model.model()));
    body.insert("messages".into(), Value::Array(messages(model, request)?));
    // The server streams unless it is asked not to.
    body.insert("stream".into(), json!(streams));
    // The server fails, where it would leave out entries.
    body.insert("truncate".into(), json!(false));
    body.insert("shift".into(), json!(false));
    tools(model, request, &mut body)?;
    if let Some(schema) = &request.schema {
        body.insert("format".into(), schema.schema.clone());
    }
    let think = match request.effort {
        None => None,
        Some(Effort::Off) => Some(json!(false)),
        Some(Effort::Minimal | Effort::Low) => Some(json!("low")),
        Some(Effort::Medium) => Some(json!("medium")),
        Some(Effort::High) => Some(json!("high")),
        Some(_) => return Err(unsupported(model, "the protocol does not know this effort")),
    };
    if let Some(think) = think {
        body.insert("think".into(), think);
    }
    let options = options(model, request)?;
    if !options.is_empty() {
        body.insert("options".into(), Value::Object(options));
    }
    merge_options(&mut body, request, PROTOCOL, model, RESERVED)?;
    Ok(Value::Object(body))
}

fn tools(
    model: &ModelId,
    request: &Request<'_>,
    body: &mut Map<String, Value>,
) -> Result<(), LlmError> {
    if request.tools.is_empty() {
        return Ok(());
    }
    match request.tool_choice {
        ToolChoice::Auto => {}
        // It calls none that it does not know.
        ToolChoice::None => return Ok(()),
        _ => return Err(unsupported(model, "the protocol cannot require a tool call")),
    }
    let function = |tool: &harness::llm::ToolSpec| {
        json!({"type": "function", "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.input_schema,
        }})
    };
    body.insert("tools".into(), request.tools.iter().map(function).collect());
    Ok(())
}

fn options(model: &ModelId, request: &Request<'_>) -> Result<Map<String, Value>, LlmError> {
    let mut options = Map::new();
    if let Some(tokens) = request.max_tokens {
        options.insert("num_predict".into(), json!(tokens));
    }
    if let Some(temperature) = request.temperature {
        options.insert("temperature".into(), decimal(temperature));
    }
    if let Some(seed) = request.seed {
        let seed = i64::try_from(seed)
            .map_err(|_| unsupported(model, "the protocol takes seeds up to 2^63 - 1"))?;
        options.insert("seed".into(), json!(seed));
    }
    if !request.stop_sequences.is_empty() {
        options.insert("stop".into(), json!(request.stop_sequences));
    }
    Ok(options)
}

/// The messages. The outcomes of a turn's calls follow it, each in a message of its own.
fn messages(model: &ModelId, request: &Request<'_>) -> Result<Vec<Value>, LlmError> {
    let mut messages = Vec::new();
    if let Some(system) = request.system.filter(|text| !text.is_empty()) {
        messages.push(json!({"role": "system", "content": system}));
    }
    for entry in request.transcript.entries() {
        match entry {
            Entry::User(content) => messages.push(message(model, "user", content)?),
            Entry::Assistant(turn) => {
                messages.push(assistant(model, turn));
                for block in &turn.blocks {
                    let Block::Call { call, outcome: Some(outcome) } = block else { continue };
                    let mut tool = message(model, "tool", &outcome.content())?;
                    tool["tool_name"] = json!(call.name);
                    tool["tool_call_id"] = json!(call.id);
                    messages.push(tool);
                }
            }
            _ => return Err(unsupported(model, "the protocol does not know this entry")),
        }
    }
    Ok(messages)
}

fn message(model: &ModelId, role: &str, content: &Content) -> Result<Value, LlmError> {
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for part in content.iter() {
        match part {
            Part::Text(text) => texts.push(text.clone()),
            Part::Json(value) => texts.push(value.to_string()),
            Part::Image(Image::Inline { base64, .. }) => images.push(base64),
            Part::Image(_) => {
                return Err(unsupported(model, "the protocol takes images inline only"));
            }
            Part::Document(_) => return Err(unsupported(model, "the protocol takes no documents")),
            _ => return Err(unsupported(model, "the protocol does not know this part")),
        }
    }
    let mut message = json!({"role": role, "content": texts.join("\n")});
    if !images.is_empty() {
        message["images"] = json!(images);
    }
    Ok(message)
}

/// A turn, without the outcomes of its calls. The protocol has one text, one thought and a list of calls.
fn assistant(model: &ModelId, turn: &Turn) -> Value {
    let (mut text, mut thoughts, mut calls) = (String::new(), String::new(), Vec::new());
    let mut thought = "";
    for block in &turn.blocks {
        let reasoning = std::mem::take(&mut thought);
        match block {
            Block::Text(more) => text.push_str(more),
            // It is sent if the mark of this model follows.
            Block::Reasoning(more) => thought = more,
            Block::Call { call, .. } => calls.push(json!({
                "id": call.id,
                "function": {"index": calls.len(), "name": call.name, "arguments": arguments(call)},
            })),
            Block::Opaque { protocol, model: of, .. }
                if protocol.as_str() == PROTOCOL && of == model =>
            {
                thoughts.push_str(reasoning);
            }
            _ => {}
        }
    }
    let mut message = json!({"role": "assistant", "content": text});
    if !thoughts.is_empty() {
        message["thinking"] = json!(thoughts);
    }
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    message
}

/// The arguments, which the protocol takes as an object only.
fn arguments(call: &ToolCall) -> Value {
    match call.json() {
        Ok(Value::Object(arguments)) => Value::Object(arguments),
        _ => json!({}),
    }
}

#[cfg(test)]
mod tests;
