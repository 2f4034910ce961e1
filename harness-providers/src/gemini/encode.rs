//! Requests as JSON.

use super::PROTOCOL;
use super::schema::{of_reply, of_tool};
use crate::decimal::decimal;
use crate::failure::unsupported;
use crate::merge::merge_options;
use harness::llm::{
    Block, Content, Document, Effort, Entry, Image, LlmError, LlmErrorKind, ModelId, Part, Request,
    ToolCall, ToolChoice, ToolOutcome, Turn,
};
use serde_json::{Map, Value, json};

/// The most stop sequences of a request.
const MOST_STOPS: usize = 5;

/// In place of the signature of a call that another model has made: models of generation 3 and later
/// require one.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The path of a request.
pub(super) fn path(model: &ModelId, streams: bool) -> Result<String, LlmError> {
    let name = model.model();
    let legal = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if name.is_empty() || name.contains("..") || !name.chars().all(legal) {
        return Err(LlmError::new(LlmErrorKind::InvalidRequest)
            .with_model(model.clone())
            .with_detail("the name of the model cannot be part of a URL"));
    }
    // Tuned models have a folder of their own.
    let folder = if name.contains('/') { "" } else { "models/" };
    Ok(match streams {
        false => format!("/v1beta/{folder}{name}:generateContent"),
        true => format!("/v1beta/{folder}{name}:streamGenerateContent?alt=sse"),
    })
}

/// The body of a request.
pub(super) fn body(model: &ModelId, request: &Request<'_>) -> Result<Value, LlmError> {
    let mut body = Map::new();
    body.insert("contents".into(), Value::Array(contents(model, request)?));
    if let Some(system) = request.system.filter(|text| !text.is_empty()) {
        body.insert("systemInstruction".into(), json!({"parts": [{"text": system}]}));
    }
    tools(request, &mut body);
    let config = generation(model, request)?;
    if !config.is_empty() {
        body.insert("generationConfig".into(), Value::Object(config));
    }
    merge_options(&mut body, request, PROTOCOL, model, &["contents"])?;
    Ok(Value::Object(body))
}

fn tools(request: &Request<'_>, body: &mut Map<String, Value>) {
    if request.tools.is_empty() {
        return;
    }
    let declared: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| {
            json!({
                "name": tool.name,
                "description": tool.description,
                "parametersJsonSchema": of_tool(&tool.input_schema),
            })
        })
        .collect();
    body.insert("tools".into(), json!([{"functionDeclarations": declared}]));
    let config = match request.tool_choice {
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
        _ => return,
    };
    body.insert("toolConfig".into(), json!({"functionCallingConfig": config}));
}

fn generation(model: &ModelId, request: &Request<'_>) -> Result<Map<String, Value>, LlmError> {
    let mut config = Map::new();
    if let Some(tokens) = request.max_tokens {
        config.insert("maxOutputTokens".into(), json!(tokens));
    }
    if let Some(temperature) = request.temperature {
        config.insert("temperature".into(), decimal(temperature));
    }
    if request.stop_sequences.len() > MOST_STOPS {
        return Err(unsupported(model, "the protocol takes at most five stop sequences"));
    }
    if !request.stop_sequences.is_empty() {
        config.insert("stopSequences".into(), json!(request.stop_sequences));
    }
    if let Some(seed) = request.seed {
        let seed = i32::try_from(seed)
            .map_err(|_| unsupported(model, "the protocol takes seeds up to 2147483647"))?;
        config.insert("seed".into(), json!(seed));
    }
    if let Some(schema) = &request.schema {
        config.insert("responseMimeType".into(), json!("application/json"));
        config.insert("responseJsonSchema".into(), of_reply(model, schema.schema)?);
    }
    if let Some(effort) = request.effort {
        config.insert("thinkingConfig".into(), thinking(model, effort)?);
    }
    Ok(config)
}

/// Whether a model is of generation 1 or 2, which has budgets and no levels of thinking.
fn is_early(model: &ModelId) -> bool {
    let name = model.model().rsplit('/').next().unwrap_or_default();
    name.starts_with("gemini-1") || name.starts_with("gemini-2")
}

fn thinking(model: &ModelId, effort: Effort) -> Result<Value, LlmError> {
    let unknown = || unsupported(model, "the protocol does not know this effort");
    if is_early(model) {
        let budget = match effort {
            Effort::Off => return Ok(json!({"thinkingBudget": 0})),
            Effort::Minimal | Effort::Low => 1_024,
            Effort::Medium => 8_192,
            Effort::High => 24_576,
            _ => return Err(unknown()),
        };
        return Ok(json!({"thinkingBudget": budget, "includeThoughts": true}));
    }
    let level = match effort {
        Effort::Off => return Err(unsupported(model, "this model cannot be kept from thinking")),
        Effort::Minimal => "minimal",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        _ => return Err(unknown()),
    };
    Ok(json!({"thinkingLevel": level, "includeThoughts": true}))
}

/// The contents. The outcomes of a turn's calls follow it, in one content of their own.
fn contents(model: &ModelId, request: &Request<'_>) -> Result<Vec<Value>, LlmError> {
    let mut contents = Vec::new();
    let mut add = |role: &str, parts: Vec<Value>| {
        // The protocol rejects a content without parts.
        if !parts.is_empty() {
            contents.push(json!({"role": role, "parts": parts}));
        }
    };
    for entry in request.transcript.entries() {
        match entry {
            Entry::User(content) => add("user", parts(model, content)?),
            Entry::Assistant(turn) => {
                add("model", blocks(model, turn));
                add("user", responses(model, turn)?);
            }
            _ => return Err(unsupported(model, "the protocol does not know this entry")),
        }
    }
    Ok(contents)
}

fn parts(model: &ModelId, content: &Content) -> Result<Vec<Value>, LlmError> {
    let mut parts = Vec::new();
    for part in content.iter() {
        parts.push(match part {
            // The protocol rejects empty text.
            Part::Text(text) if text.is_empty() => continue,
            Part::Text(text) => json!({"text": text}),
            Part::Json(value) => json!({"text": value.to_string()}),
            Part::Image(Image::Inline { media_type, base64 })
            | Part::Document(Document::Inline { media_type, base64, .. }) => {
                inline(media_type, base64)
            }
            Part::Image(Image::Url(url)) | Part::Document(Document::Url(url)) => file(url),
            _ => return Err(unsupported(model, "the protocol does not know this part")),
        });
    }
    Ok(parts)
}

fn inline(media_type: &str, base64: &str) -> Value {
    json!({"inlineData": {"mimeType": media_type, "data": base64}})
}

/// A file by its URI, with its type if the URI shows it.
fn file(uri: &str) -> Value {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let extension = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let media_type = match extension.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "heic" => "image/heic",
        "heif" => "image/heif",
        "pdf" => "application/pdf",
        _ => return json!({"fileData": {"fileUri": uri}}),
    };
    json!({"fileData": {"fileUri": uri, "mimeType": media_type}})
}

/// The parts of a turn, without the outcomes of its calls. A signature goes back on the part that it
/// came on.
fn blocks(model: &ModelId, turn: &Turn) -> Vec<Value> {
    let mut parts: Vec<Value> = Vec::new();
    let mut thought = "";
    let mut signed = false;
    for block in &turn.blocks {
        let reasoning = std::mem::take(&mut thought);
        match block {
            Block::Text(text) if text.is_empty() => {}
            Block::Text(text) => parts.push(json!({"text": text})),
            // It is sent with its signature, which follows, or not at all.
            Block::Reasoning(text) => thought = text,
            Block::Call { call, .. } => {
                let (id, name, args) = (&call.id, &call.name, args(call));
                parts.push(json!({"functionCall": {"id": id, "name": name, "args": args}}));
            }
            Block::Opaque { protocol, model: of, data }
                if protocol.as_str() == PROTOCOL && of == model =>
            {
                signed |= data["of"] == "call";
                give_back(data, reasoning, &mut parts);
            }
            _ => {}
        }
    }
    let call = parts.iter_mut().find(|part| part.get("functionCall").is_some());
    if let Some(call) = call
        && !signed
        && !is_early(model)
        && model.model().contains("gemini")
    {
        call["thoughtSignature"] = json!(NO_SIGNATURE);
    }
    parts
}

/// Puts opaque data at its place.
fn give_back(data: &Value, reasoning: &str, parts: &mut Vec<Value>) {
    if let Some(part) = data.get("part") {
        parts.push(part.clone());
        return;
    }
    let signature = &data["thoughtSignature"];
    let last = parts.last_mut();
    match (data["of"].as_str(), last) {
        (Some("call"), Some(call)) if call.get("functionCall").is_some() => {
            call["thoughtSignature"] = signature.clone();
        }
        (Some("thought"), _) => {
            parts.push(json!({"text": reasoning, "thought": true, "thoughtSignature": signature}));
        }
        (_, last) => {
            // Of the text before it, which may have come in several parts, it takes its own.
            let own = usize::try_from(data["bytes"].as_u64().unwrap_or(0)).unwrap_or(usize::MAX);
            let before = last.and_then(|part| match part.get_mut("text") {
                Some(Value::String(text)) => Some(text),
                _ => None,
            });
            let mut text = String::new();
            let mut is_whole = false;
            if let Some(before) = before
                && let Some(at) = before.len().checked_sub(own)
                && before.is_char_boundary(at)
            {
                text = before.split_off(at);
                is_whole = before.is_empty();
            }
            if is_whole {
                parts.pop();
            }
            parts.push(json!({"text": text, "thoughtSignature": signature}));
        }
    }
}

/// The outcomes of a turn's calls, in the order of the calls.
fn responses(model: &ModelId, turn: &Turn) -> Result<Vec<Value>, LlmError> {
    let mut responses = Vec::new();
    for block in &turn.blocks {
        let Block::Call { call, outcome: Some(outcome) } = block else { continue };
        let (result, media) = result(model, &outcome.content())?;
        let key = match outcome {
            ToolOutcome::Ok(_) | ToolOutcome::Steered { .. } => "output",
            _ => "error",
        };
        let mut response = json!({"id": call.id, "name": call.name, "response": Map::from_iter([(key.to_owned(), result)])});
        if !media.is_empty() {
            response["parts"] = Value::Array(media);
        }
        responses.push(json!({"functionResponse": response}));
    }
    Ok(responses)
}

/// The value of an outcome, and its images and documents.
fn result(model: &ModelId, content: &Content) -> Result<(Value, Vec<Value>), LlmError> {
    let (mut values, mut media) = (Vec::new(), Vec::new());
    for part in content.iter() {
        match part {
            Part::Text(text) => values.push(json!(text)),
            Part::Json(value) => values.push(value.clone()),
            Part::Image(Image::Inline { media_type, base64 })
            | Part::Document(Document::Inline { media_type, base64, .. }) => {
                media.push(inline(media_type, base64));
            }
            _ => {
                return Err(unsupported(
                    model,
                    "the protocol takes files in the outcome of a tool inline only",
                ));
            }
        }
    }
    let value = match values.len() {
        0 => json!(""),
        1 => values.swap_remove(0),
        _ => Value::Array(values),
    };
    Ok((value, media))
}

/// The arguments, which the protocol takes as an object only.
fn args(call: &ToolCall) -> Value {
    match call.json() {
        Ok(Value::Object(args)) => Value::Object(args),
        _ => json!({}),
    }
}

#[cfg(test)]
mod tests;
