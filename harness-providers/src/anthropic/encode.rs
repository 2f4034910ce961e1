//! Requests as JSON.

use super::PROTOCOL;
use super::schema::of_reply;
use crate::decimal::decimal;
use crate::failure::unsupported;
use crate::merge::merge_options;
use harness::llm::{
    Block, CacheMark, Content, Document, Effort, Entry, Image, LlmError, ModelId, Part, Request,
    ToolCall, ToolChoice, ToolOutcome, Turn,
};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// The fields of a body that options cannot replace.
const RESERVED: &[&str] = &["messages", "model", "stream"];

/// The body of a request.
pub(super) fn body(
    model: &ModelId,
    max_tokens: u32,
    request: &Request<'_>,
    streams: bool,
) -> Result<Value, LlmError> {
    if request.seed.is_some() {
        return Err(unsupported(model, "the protocol has no seed"));
    }
    let mut body = Map::new();
    body.insert("model".into(), json!(model.model()));
    body.insert("max_tokens".into(), json!(request.max_tokens.unwrap_or(max_tokens)));
    body.insert("messages".into(), Value::Array(messages(model, request)?));
    if streams {
        body.insert("stream".into(), json!(true));
    }
    if let Some(system) = request.system.filter(|text| !text.trim().is_empty()) {
        let system = match request.cache.contains(&CacheMark::System) {
            true => json!([marked(json!({"type": "text", "text": system}))]),
            false => json!(system),
        };
        body.insert("system".into(), system);
    }
    tools(request, &mut body);
    if let Some(temperature) = request.temperature {
        body.insert("temperature".into(), decimal(temperature));
    }
    if !request.stop_sequences.is_empty() {
        body.insert("stop_sequences".into(), json!(request.stop_sequences));
    }
    output(model, request, &mut body)?;
    merge_options(&mut body, request, PROTOCOL, model, RESERVED)?;
    let thinks = ["enabled", "adaptive"].iter().any(|name| body_type(&body, "thinking") == *name);
    if thinks && ["any", "tool"].iter().any(|name| body_type(&body, "tool_choice") == *name) {
        return Err(unsupported(
            model,
            "the protocol cannot require a tool call of a model that thinks",
        ));
    }
    Ok(Value::Object(body))
}

fn body_type<'a>(body: &'a Map<String, Value>, field: &str) -> &'a str {
    body.get(field).and_then(|value| value["type"].as_str()).unwrap_or_default()
}

fn tools(request: &Request<'_>, body: &mut Map<String, Value>) {
    if request.tools.is_empty() {
        return;
    }
    let mut tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| {
            json!({
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.input_schema,
            })
        })
        .collect();
    if request.cache.contains(&CacheMark::Tools)
        && let Some(last) = tools.pop()
    {
        tools.push(marked(last));
    }
    body.insert("tools".into(), Value::Array(tools));
    let choice = match request.tool_choice {
        ToolChoice::None => json!({"type": "none"}),
        ToolChoice::Required => json!({"type": "any"}),
        ToolChoice::Tool(name) => json!({"type": "tool", "name": name}),
        _ => return,
    };
    body.insert("tool_choice".into(), choice);
}

/// The settings of the output: effort and schema.
fn output(
    model: &ModelId,
    request: &Request<'_>,
    body: &mut Map<String, Value>,
) -> Result<(), LlmError> {
    let mut config = Map::new();
    let effort = match request.effort {
        None => None,
        Some(Effort::Off) => {
            body.insert("thinking".into(), json!({"type": "disabled"}));
            None
        }
        Some(Effort::Minimal | Effort::Low) => Some("low"),
        Some(Effort::Medium) => Some("medium"),
        Some(Effort::High) => Some("high"),
        Some(_) => return Err(unsupported(model, "the protocol does not know this effort")),
    };
    if let Some(effort) = effort {
        config.insert("effort".into(), json!(effort));
    }
    if let Some(schema) = &request.schema {
        let format = json!({"type": "json_schema", "schema": of_reply(model, schema.schema)?});
        config.insert("format".into(), format);
    }
    if !config.is_empty() {
        body.insert("output_config".into(), Value::Object(config));
    }
    Ok(())
}

/// The messages. Roles alternate: the outcomes of a turn's calls begin the message of the user that
/// follows it.
fn messages(model: &ModelId, request: &Request<'_>) -> Result<Vec<Value>, LlmError> {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    let mut ids = CallIds::default();
    for (index, entry) in request.transcript.entries().iter().enumerate() {
        match entry {
            Entry::User(content) => push(&mut messages, "user", parts(model, content)?),
            Entry::Assistant(turn) => {
                let ids = ids.of(turn);
                push(&mut messages, "assistant", blocks(model, turn, &ids));
                push(&mut messages, "user", results(model, turn, &ids)?);
            }
            _ => return Err(unsupported(model, "the protocol does not know this entry")),
        }
        if request.cache.contains(&CacheMark::Entry(index))
            && let Some(last) = messages.last_mut().and_then(|(_, blocks)| blocks.last_mut())
        {
            *last = marked(last.take());
        }
    }
    let message = |(role, content)| json!({"role": role, "content": content});
    Ok(messages.into_iter().map(message).collect())
}

fn push<'a>(messages: &mut Vec<(&'a str, Vec<Value>)>, role: &'a str, blocks: Vec<Value>) {
    match messages.last_mut() {
        // The protocol rejects a message without content.
        _ if blocks.is_empty() => {}
        Some((last, before)) if *last == role => before.extend(blocks),
        _ => messages.push((role, blocks)),
    }
}

fn marked(mut block: Value) -> Value {
    if let Value::Object(map) = &mut block {
        map.insert("cache_control".into(), json!({"type": "ephemeral"}));
    }
    block
}

fn parts(model: &ModelId, content: &Content) -> Result<Vec<Value>, LlmError> {
    let mut blocks = Vec::new();
    for part in content.iter() {
        let block = match part {
            // The protocol rejects blank text.
            Part::Text(text) if text.trim().is_empty() => continue,
            Part::Text(text) => json!({"type": "text", "text": text}),
            Part::Json(value) => json!({"type": "text", "text": value.to_string()}),
            Part::Image(image) => json!({"type": "image", "source": image_source(model, image)?}),
            Part::Document(document) => document_block(model, document)?,
            _ => return Err(unsupported(model, "the protocol does not know this part")),
        };
        blocks.push(block);
    }
    Ok(blocks)
}

fn image_source(model: &ModelId, image: &Image) -> Result<Value, LlmError> {
    match image {
        Image::Url(url) => Ok(json!({"type": "url", "url": url})),
        Image::Inline { media_type, base64 } => {
            Ok(json!({"type": "base64", "media_type": media_type, "data": base64}))
        }
        _ => Err(unsupported(model, "the protocol does not know this image")),
    }
}

fn document_block(model: &ModelId, document: &Document) -> Result<Value, LlmError> {
    match document {
        Document::Url(url) => {
            Ok(json!({"type": "document", "source": {"type": "url", "url": url}}))
        }
        Document::Inline { media_type, base64, name } if media_type == "application/pdf" => {
            let source = json!({"type": "base64", "media_type": media_type, "data": base64});
            let mut block = json!({"type": "document", "source": source});
            if let Some(name) = name {
                block["title"] = json!(name);
            }
            Ok(block)
        }
        _ => Err(unsupported(model, "the protocol takes documents of type `application/pdf` only")),
    }
}

/// The blocks of a turn, without the outcomes of its calls.
fn blocks(model: &ModelId, turn: &Turn, ids: &[String]) -> Vec<Value> {
    let mut blocks = Vec::new();
    let mut ids = ids.iter();
    let mut thought = "";
    for block in &turn.blocks {
        let reasoning = std::mem::take(&mut thought);
        match block {
            Block::Text(text) if text.trim().is_empty() => {}
            Block::Text(text) => blocks.push(json!({"type": "text", "text": text})),
            // It is sent with its signature, which follows, or not at all.
            Block::Reasoning(text) => thought = text,
            Block::Call { call, .. } => blocks.push(json!({
                "type": "tool_use",
                "id": ids.next(),
                "name": call.name,
                "input": input(call),
            })),
            Block::Opaque { protocol, model: of, data }
                if protocol.as_str() == PROTOCOL && of == model =>
            {
                let mut data = data.clone();
                if data["type"] == "thinking" {
                    data["thinking"] = json!(reasoning);
                }
                blocks.push(data);
            }
            _ => {}
        }
    }
    // The protocol rejects reasoning at the end of a message, as a reply has that was cut in it.
    let reasons =
        |block: &Value| ["thinking", "redacted_thinking"].iter().any(|name| block["type"] == *name);
    while blocks.last().is_some_and(reasons) {
        blocks.pop();
    }
    blocks
}

/// The outcomes of a turn's calls.
fn results(model: &ModelId, turn: &Turn, ids: &[String]) -> Result<Vec<Value>, LlmError> {
    let mut results = Vec::new();
    let outcomes = turn.blocks.iter().filter_map(|block| match block {
        Block::Call { outcome, .. } => Some(outcome),
        _ => None,
    });
    for (id, outcome) in ids.iter().zip(outcomes) {
        let Some(outcome) = outcome else { continue };
        let mut result = json!({
            "type": "tool_result",
            "tool_use_id": id,
            "content": parts(model, &outcome.content())?,
        });
        if !matches!(outcome, ToolOutcome::Ok(_) | ToolOutcome::Steered { .. }) {
            result["is_error"] = json!(true);
        }
        results.push(result);
    }
    Ok(results)
}

/// The arguments, which the protocol takes as an object only.
fn input(call: &ToolCall) -> Value {
    match call.json() {
        Ok(Value::Object(input)) => Value::Object(input),
        _ => json!({}),
    }
}

/// The ids of the calls so far. They have the characters that the protocol allows, and each is of one call:
/// another provider may have made others, and may use one again.
#[derive(Default)]
struct CallIds(HashSet<String>);

impl CallIds {
    /// The ids of a turn's calls, in order: the same ones each time.
    fn of(&mut self, turn: &Turn) -> Vec<String> {
        turn.calls().map(|call| self.next(call)).collect()
    }

    fn next(&mut self, call: &ToolCall) -> String {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let id: String = call.id.as_str().chars().map(|c| if legal(c) { c } else { '_' }).collect();
        let mut free = if id.is_empty() { "_".to_owned() } else { id.clone() };
        let mut count = 2_u64;
        while !self.0.insert(free.clone()) {
            free = format!("{id}_{count}");
            count += 1;
        }
        free
    }
}

#[cfg(test)]
mod tests;
