//! Replies and events from JSON.

use super::PROTOCOL;
use crate::exchange::Decode;
use crate::failure::{Said, bad_reply, inside};
use harness::llm::{Delta, LlmError, LlmErrorKind, ModelId, StopReason, Usage};
use serde_json::{Value, json};
use std::collections::HashMap;

/// What the body of an error says.
pub(super) fn said(body: &[u8]) -> Said {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    said_in(&json["error"])
}

fn said_in(error: &Value) -> Said {
    let message = error["message"].as_str().unwrap_or_default();
    let lower = message.to_ascii_lowercase();
    Said {
        code: error["type"].as_str().map(str::to_owned),
        // Messages begin with the path of what they are about: `messages.0.content: ..`.
        about: message.split_once(": ").map(|(path, _)| path.to_owned()),
        too_long: ["prompt is too long", "exceed context limit", "context window"]
            .iter()
            .any(|words| lower.contains(words)),
        ..Said::default()
    }
}

/// The parts of a reply in one piece.
pub(super) fn message(model: &ModelId, body: &[u8]) -> Result<Vec<Delta>, LlmError> {
    let json: Value =
        serde_json::from_slice(body).map_err(|_| bad_reply(model, "the reply is not JSON"))?;
    if json["type"] != "message" {
        return Err(bad_reply(model, "the reply is not a `message`"));
    }
    let mut events = Events::new(model.clone());
    let mut deltas = events.start(&json);
    let blocks = json["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, block) in (0..).zip(blocks) {
        deltas.extend(events.block_start(index, block)?);
        deltas.extend(events.block_stop(index));
    }
    let Some(reason) = json["stop_reason"].as_str() else {
        return Err(bad_reply(model, "the reply has no `stop_reason`"));
    };
    deltas.push(Delta::Stop(stop(reason)));
    Ok(deltas)
}

/// Decodes the events of one reply.
pub(super) struct Events {
    model: ModelId,
    open: HashMap<u64, Open>,
    stop: Option<StopReason>,
    usage: Usage,
    done: bool,
}

/// A block that has started.
enum Open {
    Text,
    /// The signature so far.
    Thinking(String),
    Call,
    /// A block of the provider, with the JSON text of its input so far.
    Other(Value, String),
}

impl Events {
    pub(super) fn new(model: ModelId) -> Self {
        let (open, usage) = (HashMap::new(), Usage::default());
        Self { model, open, stop: None, usage, done: false }
    }

    fn start(&mut self, message: &Value) -> Vec<Delta> {
        let mut deltas = Vec::new();
        if let Some(name) = message["model"].as_str() {
            deltas.push(Delta::Model(ModelId::new(self.model.provider(), name)));
        }
        deltas.extend(self.usage(&message["usage"]));
        deltas
    }

    fn block_start(&mut self, index: u64, block: &Value) -> Result<Vec<Delta>, LlmError> {
        let text = |field: &str| block[field].as_str().unwrap_or_default().to_owned();
        let mut deltas = Vec::new();
        let open = match block["type"].as_str() {
            Some("text") => {
                deltas.push(Delta::Text(text("text")));
                Open::Text
            }
            Some("thinking") => {
                deltas.push(Delta::Reasoning(text("thinking")));
                Open::Thinking(text("signature"))
            }
            Some("tool_use") => {
                let (id, name) = (text("id"), text("name"));
                if id.is_empty() || name.is_empty() {
                    return Err(bad_reply(&self.model, "a `tool_use` has no `id` or no `name`"));
                }
                deltas.push(Delta::CallStart { index, id: id.into(), name: name.into() });
                // Complete in a reply in one piece, empty in a stream.
                if block["input"].as_object().is_some_and(|input| !input.is_empty()) {
                    let fragment = block["input"].to_string();
                    deltas.push(Delta::CallArguments { index, fragment });
                }
                Open::Call
            }
            Some(_) => Open::Other(block.clone(), String::new()),
            None => return Err(bad_reply(&self.model, "a block has no `type`")),
        };
        self.open.insert(index, open);
        Ok(deltas)
    }

    fn block_delta(&mut self, index: u64, delta: &Value) -> Result<Option<Delta>, LlmError> {
        let text = |field: &str| delta[field].as_str().unwrap_or_default().to_owned();
        let Some(open) = self.open.get_mut(&index) else {
            return Err(bad_reply(&self.model, "a part belongs to no open block"));
        };
        Ok(match (delta["type"].as_str(), open) {
            (Some("text_delta"), Open::Text) => Some(Delta::Text(text("text"))),
            (Some("thinking_delta"), Open::Thinking(_)) => Some(Delta::Reasoning(text("thinking"))),
            (Some("signature_delta"), Open::Thinking(signature)) => {
                signature.push_str(&text("signature"));
                None
            }
            (Some("input_json_delta"), Open::Call) => {
                Some(Delta::CallArguments { index, fragment: text("partial_json") })
            }
            (Some("input_json_delta"), Open::Other(_, input)) => {
                input.push_str(&text("partial_json"));
                None
            }
            // Such as citations, which have no place in a turn.
            _ => None,
        })
    }

    fn block_stop(&mut self, index: u64) -> Option<Delta> {
        let data = match self.open.remove(&index)? {
            Open::Text => return None,
            Open::Call => return Some(Delta::CallEnd { index }),
            Open::Thinking(signature) => json!({"type": "thinking", "signature": signature}),
            Open::Other(mut block, input) => {
                if let Ok(input) = serde_json::from_str::<Value>(&input) {
                    block["input"] = input;
                }
                block
            }
        };
        Some(Delta::Opaque { protocol: PROTOCOL.into(), model: self.model.clone(), data })
    }

    /// The usage so far. The counts are cumulative.
    fn usage(&mut self, json: &Value) -> Option<Delta> {
        let count = |field: &str| json[field].as_u64();
        let read = count("cache_read_input_tokens");
        let write = count("cache_creation_input_tokens");
        self.usage.cache_read = read.or(self.usage.cache_read);
        self.usage.cache_write = write.or(self.usage.cache_write);
        if let Some(plain) = count("input_tokens") {
            let cached = [self.usage.cache_read, self.usage.cache_write];
            let all = cached.into_iter().flatten().fold(plain, u64::saturating_add);
            self.usage.input = Some(all);
        }
        self.usage.output = count("output_tokens").or(self.usage.output);
        (json.is_object()).then_some(Delta::Usage(self.usage))
    }
}

impl Decode for Events {
    fn event(&mut self, data: &str) -> Result<Vec<Delta>, LlmError> {
        let json: Value = serde_json::from_str(data)
            .map_err(|_| bad_reply(&self.model, "an event is not JSON"))?;
        let index = || json["index"].as_u64().unwrap_or_default();
        match json["type"].as_str() {
            Some("message_start") => Ok(self.start(&json["message"])),
            Some("content_block_start") => self.block_start(index(), &json["content_block"]),
            Some("content_block_delta") => {
                Ok(self.block_delta(index(), &json["delta"])?.into_iter().collect())
            }
            Some("content_block_stop") => Ok(self.block_stop(index()).into_iter().collect()),
            Some("message_delta") => {
                if let Some(reason) = json["delta"]["stop_reason"].as_str() {
                    self.stop = Some(stop(reason));
                }
                Ok(self.usage(&json["usage"]).into_iter().collect())
            }
            Some("message_stop") => {
                self.done = true;
                match self.stop.take() {
                    Some(reason) => Ok(vec![Delta::Stop(reason)]),
                    None => Err(bad_reply(&self.model, "the reply has no `stop_reason`")),
                }
            }
            Some("error") => {
                let said = said_in(&json["error"]);
                let kind = match said.code.as_deref() {
                    _ if said.too_long => LlmErrorKind::ContextLength,
                    Some("overloaded_error") => LlmErrorKind::Overloaded,
                    Some("rate_limit_error") => LlmErrorKind::RateLimited { retry_after: None },
                    Some("authentication_error" | "billing_error" | "permission_error") => {
                        LlmErrorKind::Auth
                    }
                    Some("not_found_error") => LlmErrorKind::UnknownModel,
                    Some("invalid_request_error") => LlmErrorKind::InvalidRequest,
                    Some("api_error" | "timeout_error") => LlmErrorKind::Unavailable,
                    _ => LlmErrorKind::Stream,
                };
                Err(inside(kind, &said, &self.model))
            }
            // `ping`, and what comes later: the protocol adds events.
            _ => Ok(Vec::new()),
        }
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

fn stop(reason: &str) -> StopReason {
    match reason {
        "end_turn" => StopReason::End,
        "tool_use" => StopReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "stop_sequence" => StopReason::StopSequence,
        "pause_turn" => StopReason::Paused,
        "refusal" => StopReason::Refusal,
        other => StopReason::Other(other.to_owned()),
    }
}

#[cfg(test)]
mod tests;
