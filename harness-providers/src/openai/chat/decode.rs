//! Replies and events from JSON.

use super::super::error::of_reply;
use crate::exchange::Decode;
use crate::failure::bad_reply;
use harness::llm::{Delta, LlmError, ModelId, StopReason, Usage};
use serde_json::Value;
use std::collections::HashMap;

/// The parts of a reply in one piece.
pub(super) fn completion(model: &ModelId, body: &[u8]) -> Result<Vec<Delta>, LlmError> {
    let json: Value =
        serde_json::from_slice(body).map_err(|_| bad_reply(model, "the reply is not JSON"))?;
    if !json["error"].is_null() {
        return Err(of_reply(&json["error"], model));
    }
    let choice = &json["choices"][0];
    if !choice["message"].is_object() {
        return Err(bad_reply(model, "the reply has no `choices` with a `message`"));
    }
    let mut events = Events::new(model.clone());
    let mut deltas = events.head(&json);
    deltas.extend(events.choice(&choice["message"], &choice["finish_reason"])?);
    deltas.push(events.stop()?);
    Ok(deltas)
}

/// Decodes the events of one reply.
pub(super) struct Events {
    model: ModelId,
    /// Whether the model that replies has been reported.
    named: bool,
    /// The calls by their index on the wire, which servers choose as they like.
    calls: HashMap<u64, Call>,
    /// How many calls there are.
    count: u64,
    refused: bool,
    finish: Option<StopReason>,
    done: bool,
}

struct Call {
    index: u64,
    id: String,
}

impl Events {
    pub(super) fn new(model: ModelId) -> Self {
        Self {
            model,
            named: false,
            calls: HashMap::new(),
            count: 0,
            refused: false,
            finish: None,
            done: false,
        }
    }

    /// What every event repeats: the model, and the usage where it is known.
    fn head(&mut self, json: &Value) -> Vec<Delta> {
        let mut deltas = Vec::new();
        let name = json["model"].as_str().filter(|name| !name.is_empty() && !self.named);
        if let Some(name) = name {
            self.named = true;
            deltas.push(Delta::Model(ModelId::new(self.model.provider(), name)));
        }
        if json["usage"].is_object() {
            deltas.push(Delta::Usage(usage(&json["usage"])));
        }
        deltas
    }

    /// A message, or more of it.
    fn choice(&mut self, message: &Value, finish: &Value) -> Result<Vec<Delta>, LlmError> {
        let mut deltas = Vec::new();
        let text = |field: &str| message[field].as_str().filter(|text| !text.is_empty());
        // Compatible servers show reasoning by one of these names.
        if let Some(reasoning) = text("reasoning_content").or(text("reasoning")) {
            deltas.push(Delta::Reasoning(reasoning.to_owned()));
        }
        if let Some(content) = text("content") {
            deltas.push(Delta::Text(content.to_owned()));
        }
        if let Some(refusal) = text("refusal") {
            self.refused = true;
            deltas.push(Delta::Text(refusal.to_owned()));
        }
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (place, call) in (0..).zip(calls) {
            self.call(place, call, &mut deltas)?;
        }
        if let Some(reason) = finish.as_str() {
            self.finish = Some(self.reason(reason));
        }
        Ok(deltas)
    }

    /// A call, or more of it.
    fn call(&mut self, place: u64, json: &Value, deltas: &mut Vec<Delta>) -> Result<(), LlmError> {
        let text =
            |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let wire = json["index"].as_u64().unwrap_or(place);
        let (id, name) = (text(&json["id"]), text(&json["function"]["name"]));
        let open = self.calls.get(&wire);
        // Some servers give every call the same index.
        let is_other = open.is_some_and(|open| id.as_ref().is_some_and(|id| *id != open.id));
        let index = match open {
            Some(open) if !(is_other && name.is_some()) => open.index,
            _ => {
                let (Some(id), Some(name)) = (id, name) else {
                    let what =
                        "a part of a tool call belongs to no call, or has no `id` or no name";
                    return Err(bad_reply(&self.model, what));
                };
                let index = self.count;
                self.count += 1;
                self.calls.insert(wire, Call { index, id: id.clone() });
                deltas.push(Delta::CallStart { index, id: id.into(), name: name.into() });
                index
            }
        };
        match &json["function"]["arguments"] {
            Value::Null => {}
            Value::String(fragment) => {
                deltas.push(Delta::CallArguments { index, fragment: fragment.clone() });
            }
            // Some servers send an object, which is no text.
            value => {
                deltas.push(Delta::CallArguments { index, fragment: value.to_string() });
            }
        }
        Ok(())
    }

    fn reason(&self, name: &str) -> StopReason {
        match name {
            "stop" if self.refused => StopReason::Refusal,
            // So it is where the request names the tool to call.
            "stop" if self.count > 0 => StopReason::ToolCalls,
            "stop" => StopReason::End,
            "length" => StopReason::MaxTokens,
            "tool_calls" | "function_call" => StopReason::ToolCalls,
            "content_filter" => StopReason::ContentFilter,
            other => StopReason::Other(other.to_owned()),
        }
    }

    fn stop(&mut self) -> Result<Delta, LlmError> {
        match self.finish.take() {
            Some(reason) => Ok(Delta::Stop(reason)),
            None => Err(bad_reply(&self.model, "the reply has no `finish_reason`")),
        }
    }
}

impl Decode for Events {
    fn event(&mut self, data: &str) -> Result<Vec<Delta>, LlmError> {
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(vec![self.stop()?]);
        }
        let json: Value = serde_json::from_str(data)
            .map_err(|_| bad_reply(&self.model, "an event is not JSON"))?;
        if !json["error"].is_null() {
            return Err(of_reply(&json["error"], &self.model));
        }
        let mut deltas = self.head(&json);
        // The event with the usage has no choice.
        let choice = &json["choices"][0];
        deltas.extend(self.choice(&choice["delta"], &choice["finish_reason"])?);
        Ok(deltas)
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

fn usage(json: &Value) -> Usage {
    let count = |field: &str| json[field].as_u64();
    let input = |field: &str| json["prompt_tokens_details"][field].as_u64();
    Usage {
        input: count("prompt_tokens"),
        output: count("completion_tokens"),
        cache_read: input("cached_tokens"),
        cache_write: input("cache_write_tokens"),
        reasoning: json["completion_tokens_details"]["reasoning_tokens"].as_u64(),
    }
}

#[cfg(test)]
mod tests;
