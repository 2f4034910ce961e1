//! Replies and lines from JSON.

use super::PROTOCOL;
use crate::exchange::Decode;
use crate::failure::{Said, bad_reply, inside};
use crate::made_ids::MadeIds;
use harness::llm::{Delta, LlmError, LlmErrorKind, ModelId, StopReason, Usage};
use serde_json::{Value, json};

/// What the body of an error says.
pub(super) fn said(body: &[u8]) -> Said {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    said_in(&json["error"])
}

/// An error is a text without a code.
fn said_in(error: &Value) -> Said {
    let text = error.as_str().or_else(|| error["message"].as_str()).unwrap_or_default();
    let lower = text.to_ascii_lowercase();
    let too_long = ["context length", "exceeds the available context", "context size"]
        .iter()
        .any(|words| lower.contains(words));
    Said { too_long, ..Said::default() }
}

/// Decodes the lines of one reply. Each is a reply with the next parts.
pub(super) struct Events {
    model: ModelId,
    ids: MadeIds,
    next_call: u64,
    /// Whether thoughts have arrived whose mark has not.
    in_thought: bool,
    done: bool,
}

impl Events {
    pub(super) fn new(model: ModelId, ids: MadeIds) -> Self {
        Self { model, ids, next_call: 0, in_thought: false, done: false }
    }

    /// The parts of a reply in one piece.
    pub(super) fn whole(mut self, body: &[u8]) -> Result<Vec<Delta>, LlmError> {
        let json: Value = serde_json::from_slice(body)
            .map_err(|_| bad_reply(&self.model, "the reply is not JSON"))?;
        let deltas = self.line(&json)?;
        match self.done {
            true => Ok(deltas),
            false => Err(bad_reply(&self.model, "the reply is not `done`")),
        }
    }

    fn line(&mut self, json: &Value) -> Result<Vec<Delta>, LlmError> {
        if let Some(error) = json.get("error") {
            let said = said_in(error);
            let kind = match said.too_long {
                true => LlmErrorKind::ContextLength,
                false => LlmErrorKind::Unavailable,
            };
            return Err(inside(kind, &said, &self.model));
        }
        if !json["done"].is_boolean() {
            return Err(bad_reply(&self.model, "a part of the reply has no `done`"));
        }
        let mut deltas = Vec::new();
        let message = &json["message"];
        let text = |field: &str| message[field].as_str().filter(|text| !text.is_empty());
        if let Some(thought) = text("thinking") {
            deltas.push(Delta::Reasoning(thought.to_owned()));
            self.in_thought = true;
        }
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        let (content, done) = (text("content"), json["done"] == true);
        if self.in_thought && (content.is_some() || !calls.is_empty() || done) {
            self.in_thought = false;
            deltas.push(Delta::Opaque {
                protocol: PROTOCOL.into(),
                model: self.model.clone(),
                data: json!({"type": "thinking"}),
            });
        }
        deltas.extend(content.map(|text| Delta::Text(text.to_owned())));
        for call in calls {
            self.call(call, &mut deltas)?;
        }
        if done {
            self.done = true;
            if let Some(name) = json["model"].as_str().filter(|name| !name.is_empty()) {
                deltas.push(Delta::Model(ModelId::new(self.model.provider(), name)));
            }
            let count = |field: &str| json[field].as_u64();
            deltas.push(Delta::Usage(Usage {
                input: count("prompt_eval_count"),
                output: count("eval_count"),
                ..Usage::default()
            }));
            deltas.push(Delta::Stop(self.stop(json["done_reason"].as_str())));
        }
        Ok(deltas)
    }

    fn call(&mut self, call: &Value, deltas: &mut Vec<Delta>) -> Result<(), LlmError> {
        let function = &call["function"];
        let Some(name) = function["name"].as_str().filter(|name| !name.is_empty()) else {
            return Err(bad_reply(&self.model, "a tool call has no `name`"));
        };
        let id = call["id"].as_str().filter(|id| !id.is_empty());
        let id = id.map_or_else(|| self.ids.next(), Into::into);
        let index = self.next_call;
        self.next_call += 1;
        deltas.push(Delta::CallStart { index, id, name: name.into() });
        match &function["arguments"] {
            Value::Null => {}
            // Some servers of the protocol write the text of the arguments.
            Value::String(text) => {
                deltas.push(Delta::CallArguments { index, fragment: text.clone() });
            }
            arguments => {
                deltas.push(Delta::CallArguments { index, fragment: arguments.to_string() });
            }
        }
        deltas.push(Delta::CallEnd { index });
        Ok(())
    }

    fn stop(&self, reason: Option<&str>) -> StopReason {
        match reason {
            None | Some("stop") if self.next_call > 0 => StopReason::ToolCalls,
            None | Some("stop") => StopReason::End,
            Some("length") => StopReason::MaxTokens,
            Some(other) => StopReason::Other(other.to_owned()),
        }
    }
}

impl Decode for Events {
    fn event(&mut self, data: &str) -> Result<Vec<Delta>, LlmError> {
        let json: Value =
            serde_json::from_str(data).map_err(|_| bad_reply(&self.model, "a line is not JSON"))?;
        self.line(&json)
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

#[cfg(test)]
mod tests;
