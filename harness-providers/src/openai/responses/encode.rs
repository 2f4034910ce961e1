//! Requests as JSON.

use super::super::{CallIds, Sent, effort, format, outcome_content, parts, simple};
use super::PROTOCOL;
use crate::decimal::decimal;
use crate::failure::unsupported;
use crate::merge::merge_options;
use harness::llm::{Block, Entry, LlmError, ModelId, Request, ToolChoice, Turn};
use serde_json::{Map, Value, json};

/// The fields of a body that options cannot replace. A request has its whole transcript, and waits for
/// the reply.
const RESERVED: &[&str] =
    &["background", "conversation", "input", "model", "previous_response_id", "stream"];

/// The longest id of a call that the protocol takes.
const LONGEST_ID: usize = 64;

/// The body of a request.
pub(super) fn body(
    model: &ModelId,
    reasons: bool,
    request: &Request<'_>,
    streams: bool,
) -> Result<Value, LlmError> {
    if request.seed.is_some() {
        return Err(unsupported(model, "the protocol has no seed"));
    }
    if !request.stop_sequences.is_empty() {
        return Err(unsupported(model, "the protocol has no stop sequences"));
    }
    let mut body = Map::new();
    body.insert("model".into(), json!(model.model()));
    body.insert("store".into(), json!(false));
    if reasons {
        body.insert("include".into(), json!(["reasoning.encrypted_content"]));
    }
    body.insert("input".into(), Value::Array(input(model, request)?));
    if streams {
        body.insert("stream".into(), json!(true));
    }
    if let Some(system) = request.system.filter(|text| !text.trim().is_empty()) {
        body.insert("instructions".into(), json!(system));
    }
    tools(request, &mut body);
    if let Some(tokens) = request.max_tokens {
        body.insert("max_output_tokens".into(), json!(tokens));
    }
    if let Some(temperature) = request.temperature {
        body.insert("temperature".into(), decimal(temperature));
    }
    if let Some(asked) = request.effort {
        body.insert("reasoning".into(), json!({"effort": effort(model, asked)?}));
    }
    if let Some(mut format) = format(request) {
        format.insert("type".into(), json!("json_schema"));
        body.insert("text".into(), json!({"format": format}));
    }
    merge_options(&mut body, request, PROTOCOL, model, RESERVED)?;
    Ok(Value::Object(body))
}

fn tools(request: &Request<'_>, body: &mut Map<String, Value>) {
    if request.tools.is_empty() {
        return;
    }
    // Without `strict` the provider would make optional arguments required.
    let tool = |tool: &harness::llm::ToolSpec| {
        json!({
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.input_schema,
            "strict": false,
        })
    };
    body.insert("tools".into(), request.tools.iter().map(tool).collect());
    let choice = match request.tool_choice {
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Tool(name) => json!({"type": "function", "name": name}),
        _ => return,
    };
    body.insert("tool_choice".into(), choice);
}

/// The items of the transcript. The outcomes of a turn's calls follow it.
fn input(model: &ModelId, request: &Request<'_>) -> Result<Vec<Value>, LlmError> {
    let mut items = Vec::new();
    let mut ids = CallIds::new(LONGEST_ID);
    for entry in request.transcript.transcript().entries() {
        match entry {
            Entry::User(content) => {
                let content = parts(model, content, shape)?;
                if !content.is_empty() {
                    items.push(json!({"role": "user", "content": content}));
                }
            }
            Entry::Assistant(turn) => assistant(model, turn, &mut ids, &mut items)?,
            _ => return Err(unsupported(model, "the protocol does not know this entry")),
        }
    }
    Ok(items)
}

fn shape(_: &ModelId, sent: Sent<'_>) -> Result<Value, LlmError> {
    Ok(match sent {
        Sent::Text(text) => json!({"type": "input_text", "text": text}),
        Sent::Image(url) => json!({"type": "input_image", "image_url": url}),
        Sent::File { name, data, .. } => {
            json!({"type": "input_file", "filename": name, "file_data": data})
        }
        Sent::FileAt(url) => json!({"type": "input_file", "file_url": url}),
    })
}

fn assistant<'a>(
    model: &ModelId,
    turn: &'a Turn,
    ids: &mut CallIds<'a>,
    items: &mut Vec<Value>,
) -> Result<(), LlmError> {
    let (mut own, mut results) = (Vec::new(), Vec::new());
    let mut text = String::new();
    for block in &turn.blocks {
        match block {
            Block::Text(more) => text.push_str(more),
            Block::Call { call, outcome } => {
                message(&mut text, None, &mut own);
                let id = ids.of(&call.id);
                own.push(json!({
                    "type": "function_call",
                    "call_id": id,
                    "name": call.name,
                    "arguments": call.arguments,
                }));
                let Some(outcome) = outcome else { continue };
                let output = simple(parts(model, &outcome_content(outcome), shape)?);
                results
                    .push(json!({"type": "function_call_output", "call_id": id, "output": output}));
            }
            Block::Opaque { protocol, model: of, data }
                if protocol.as_str() == PROTOCOL && of == model =>
            {
                // It follows the text of its message, and says what the message is.
                if data["type"] == "message" {
                    message(&mut text, data.get("phase"), &mut own);
                } else {
                    message(&mut text, None, &mut own);
                    own.push(data.clone());
                }
            }
            _ => {}
        }
    }
    message(&mut text, None, &mut own);
    // The provider rejects reasoning without the item that it led to.
    while own.last().is_some_and(|item| item["type"] == "reasoning") {
        own.pop();
    }
    items.append(&mut own);
    items.append(&mut results);
    Ok(())
}

/// A message of the text so far.
fn message(text: &mut String, phase: Option<&Value>, items: &mut Vec<Value>) {
    if text.is_empty() {
        return;
    }
    let mut message = json!({"role": "assistant", "content": std::mem::take(text)});
    if let Some(phase) = phase {
        message["phase"] = phase.clone();
    }
    items.push(message);
}

#[cfg(test)]
mod tests;
