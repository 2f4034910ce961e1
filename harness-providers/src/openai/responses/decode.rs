//! Replies and events from JSON.

use super::super::error::of_reply;
use super::PROTOCOL;
use crate::exchange::Decode;
use crate::failure::bad_reply;
use harness::llm::{Delta, LlmError, ModelId, StopReason, Usage};
use serde_json::{Value, json};
use std::collections::HashMap;

/// The parts of a reply in one piece.
pub(super) fn response(model: &ModelId, body: &[u8]) -> Result<Vec<Delta>, LlmError> {
    let json: Value =
        serde_json::from_slice(body).map_err(|_| bad_reply(model, "the reply is not JSON"))?;
    if json["object"] != "response" {
        return Err(bad_reply(model, "the reply is not a `response`"));
    }
    let mut events = Events::new(model.clone());
    let mut deltas = events.head(&json);
    let items = json["output"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, item) in (0..).zip(items) {
        deltas.extend(events.whole_item(index, item)?);
    }
    deltas.extend(events.end(&json)?);
    Ok(deltas)
}

/// Decodes the events of one reply.
pub(super) struct Events {
    model: ModelId,
    named: bool,
    /// The open calls, and whether their arguments have begun.
    calls: HashMap<u64, bool>,
    called: bool,
    refused: bool,
    done: bool,
}

impl Events {
    pub(super) fn new(model: ModelId) -> Self {
        let calls = HashMap::new();
        Self { model, named: false, calls, called: false, refused: false, done: false }
    }

    /// The model that replies, once.
    fn head(&mut self, response: &Value) -> Vec<Delta> {
        match response["model"].as_str() {
            Some(name) if !self.named => {
                self.named = true;
                vec![Delta::Model(ModelId::new(self.model.provider(), name))]
            }
            _ => Vec::new(),
        }
    }

    fn item_start(&mut self, index: u64, item: &Value) -> Result<Vec<Delta>, LlmError> {
        if item["type"] != "function_call" {
            return Ok(Vec::new());
        }
        let text = |field: &str| item[field].as_str().filter(|text| !text.is_empty());
        let (Some(id), Some(name)) = (text("call_id"), text("name")) else {
            let what = "a `function_call` has no `call_id` or no `name`";
            return Err(bad_reply(&self.model, what));
        };
        self.called = true;
        self.calls.insert(index, false);
        Ok(vec![Delta::CallStart { index, id: id.into(), name: name.into() }])
    }

    fn arguments(&mut self, index: u64, fragment: &str) -> Result<Vec<Delta>, LlmError> {
        let Some(begun) = self.calls.get_mut(&index) else {
            return Err(bad_reply(&self.model, "arguments belong to no open call"));
        };
        *begun |= !fragment.is_empty();
        Ok(vec![Delta::CallArguments { index, fragment: fragment.to_owned() }])
    }

    fn item_end(&mut self, index: u64, item: &Value) -> Vec<Delta> {
        let mut deltas = Vec::new();
        match item["type"].as_str() {
            Some("function_call") => {
                let Some(begun) = self.calls.remove(&index) else { return deltas };
                // A gateway may leave out what the item repeats.
                let arguments = item["arguments"].as_str().unwrap_or_default();
                if !begun && !arguments.is_empty() {
                    let fragment = arguments.to_owned();
                    deltas.push(Delta::CallArguments { index, fragment });
                }
                deltas.push(Delta::CallEnd { index });
            }
            // Its text has arrived. Only this is left to send back.
            Some("message") => {
                if let Some(phase) = item.get("phase").filter(|phase| !phase.is_null()) {
                    deltas.push(self.opaque(json!({"type": "message", "phase": phase})));
                }
            }
            // The provider looks for it by its id, and has stored nothing.
            Some("reasoning")
                if item["encrypted_content"].is_null() && item["content"].is_null() => {}
            // Reasoning, and items that only the provider knows.
            Some(_) => deltas.push(self.opaque(item.clone())),
            None => {}
        }
        deltas
    }

    fn opaque(&self, data: Value) -> Delta {
        Delta::Opaque { protocol: PROTOCOL.into(), model: self.model.clone(), data }
    }

    /// An item in one piece.
    fn whole_item(&mut self, index: u64, item: &Value) -> Result<Vec<Delta>, LlmError> {
        let mut deltas = self.item_start(index, item)?;
        let list = |field: &str| item[field].as_array().map(Vec::as_slice).unwrap_or_default();
        match item["type"].as_str() {
            Some("message") => {
                for part in list("content") {
                    deltas.extend(match part["type"].as_str() {
                        Some("output_text") => Some(text(&part["text"])),
                        Some("refusal") => Some(self.refusal(&part["refusal"])),
                        _ => None,
                    });
                }
            }
            Some("reasoning") => {
                for (place, part) in list("summary").iter().enumerate() {
                    if place > 0 {
                        deltas.push(paragraph());
                    }
                    deltas.push(reasoning(&part["text"]));
                }
                deltas.extend(list("content").iter().map(|part| reasoning(&part["text"])));
            }
            Some(_) => {}
            None => return Err(bad_reply(&self.model, "an item has no `type`")),
        }
        deltas.extend(self.item_end(index, item));
        Ok(deltas)
    }

    fn refusal(&mut self, json: &Value) -> Delta {
        self.refused = true;
        text(json)
    }

    /// The end of a reply: its usage, and why it stopped.
    fn end(&mut self, response: &Value) -> Result<Vec<Delta>, LlmError> {
        let mut deltas = self.head(response);
        if response["usage"].is_object() {
            deltas.push(Delta::Usage(usage(&response["usage"])));
        }
        let stop = match response["status"].as_str() {
            Some("completed") if self.refused => StopReason::Refusal,
            Some("completed") if self.called => StopReason::ToolCalls,
            Some("completed") => StopReason::End,
            Some("incomplete") => match response["incomplete_details"]["reason"].as_str() {
                Some("max_output_tokens" | "max_tokens") => StopReason::MaxTokens,
                Some("content_filter") => StopReason::ContentFilter,
                other => StopReason::Other(other.unwrap_or("incomplete").to_owned()),
            },
            Some("failed") => return Err(of_reply(&response["error"], &self.model)),
            _ => return Err(bad_reply(&self.model, "the reply has no `status` of a reply")),
        };
        deltas.push(Delta::Stop(stop));
        Ok(deltas)
    }
}

impl Decode for Events {
    fn event(&mut self, data: &str) -> Result<Vec<Delta>, LlmError> {
        // The protocol has no such event, but gateways that speak it do.
        if data.trim() == "[DONE]" {
            return Ok(Vec::new());
        }
        let json: Value = serde_json::from_str(data)
            .map_err(|_| bad_reply(&self.model, "an event is not JSON"))?;
        let index = || json["output_index"].as_u64().unwrap_or_default();
        match json["type"].as_str() {
            Some("response.created") => Ok(self.head(&json["response"])),
            Some("response.output_item.added") => self.item_start(index(), &json["item"]),
            Some("response.output_text.delta") => Ok(vec![text(&json["delta"])]),
            Some("response.refusal.delta") => Ok(vec![self.refusal(&json["delta"])]),
            Some("response.reasoning_summary_part.added") => Ok(json["summary_index"]
                .as_u64()
                .filter(|n| *n > 0)
                .map(|_| paragraph())
                .into_iter()
                .collect()),
            Some("response.reasoning_summary_text.delta" | "response.reasoning_text.delta") => {
                Ok(vec![reasoning(&json["delta"])])
            }
            Some("response.function_call_arguments.delta") => {
                self.arguments(index(), json["delta"].as_str().unwrap_or_default())
            }
            Some("response.output_item.done") => Ok(self.item_end(index(), &json["item"])),
            Some("response.completed" | "response.incomplete" | "response.failed") => {
                self.done = true;
                self.end(&json["response"])
            }
            Some("error") => Err(match &json["error"] {
                Value::Null => of_reply(&json, &self.model),
                error => of_reply(error, &self.model),
            }),
            // What repeats the parts, and what comes later: the protocol adds events.
            _ => Ok(Vec::new()),
        }
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

fn text(json: &Value) -> Delta {
    Delta::Text(json.as_str().unwrap_or_default().to_owned())
}

fn reasoning(json: &Value) -> Delta {
    Delta::Reasoning(json.as_str().unwrap_or_default().to_owned())
}

/// Between two parts of a summary.
fn paragraph() -> Delta {
    Delta::Reasoning("\n\n".to_owned())
}

fn usage(json: &Value) -> Usage {
    let count = |field: &str| json[field].as_u64();
    let input = |field: &str| json["input_tokens_details"][field].as_u64();
    Usage {
        input: count("input_tokens"),
        output: count("output_tokens"),
        cache_read: input("cached_tokens"),
        cache_write: input("cache_write_tokens"),
        reasoning: json["output_tokens_details"]["reasoning_tokens"].as_u64(),
    }
}

#[cfg(test)]
mod tests;
