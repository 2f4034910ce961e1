//! Replies and events from JSON.

use super::PROTOCOL;
use crate::exchange::Decode;
use crate::failure::{Said, bad_reply, inside};
use crate::made_ids::MadeIds;
use harness::llm::{Delta, LlmError, LlmErrorKind, ModelId, Reply, StopReason, Usage};
use serde_json::{Value, json};
use std::time::Duration;

/// What the body of an error says.
pub(super) fn said(body: &[u8]) -> Said {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    // In a stream that is no stream of events, an error is in a list.
    said_in(json.get(0).unwrap_or(&json).get("error").unwrap_or(&Value::Null))
}

fn said_in(error: &Value) -> Said {
    let message = error["message"].as_str().unwrap_or_default().to_ascii_lowercase();
    let details = error["details"].as_array().map(Vec::as_slice).unwrap_or_default();
    let detail = |name: &str| {
        let of_type = |detail: &&Value| {
            detail["@type"]
                .as_str()
                .is_some_and(|full| full.rsplit(['.', '/']).next() == Some(name))
        };
        details.iter().find(of_type).unwrap_or(&Value::Null)
    };
    let field = &detail("BadRequest")["fieldViolations"][0]["field"];
    let reason = detail("ErrorInfo")["reason"].as_str();
    Said {
        code: error["status"].as_str().map(str::to_owned),
        about: field.as_str().map(str::to_owned),
        too_long: message.contains("exceeds the maximum number of tokens"),
        // It comes as an invalid argument.
        kind: (reason == Some("API_KEY_INVALID")).then_some(LlmErrorKind::Auth),
        wait: detail("RetryInfo")["retryDelay"].as_str().and_then(seconds),
    }
}

/// The reply, unless its function call is withheld because the model wrote it wrongly. There is nothing
/// that the model could correct then.
pub(super) fn with_calls(reply: Reply) -> Result<Reply, LlmError> {
    match &reply.stop {
        StopReason::Other(reason)
            if ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"].contains(&reason.as_str()) =>
        {
            Err(bad_reply(&reply.model, &format!("the model stopped with `{reason}`")))
        }
        _ => Ok(reply),
    }
}

/// A duration as JSON writes it: `34.5s`.
fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.strip_suffix('s')?.parse().ok()?).ok()
}

/// Decodes the events of one reply. Each is a reply with the next parts.
pub(super) struct Events {
    model: ModelId,
    ids: MadeIds,
    next_call: u64,
    usage: Usage,
    has_stopped: bool,
    done: bool,
}

impl Events {
    pub(super) fn new(model: ModelId, ids: MadeIds) -> Self {
        let usage = Usage::default();
        Self { model, ids, next_call: 0, usage, has_stopped: false, done: false }
    }

    /// The parts of a reply in one piece.
    pub(super) fn whole(mut self, body: &[u8]) -> Result<Vec<Delta>, LlmError> {
        let json: Value = serde_json::from_slice(body)
            .map_err(|_| bad_reply(&self.model, "the reply is not JSON"))?;
        let deltas = self.response(&json)?;
        match self.has_stopped {
            true => Ok(deltas),
            false => Err(bad_reply(&self.model, "the reply has no `finishReason`")),
        }
    }

    fn response(&mut self, json: &Value) -> Result<Vec<Delta>, LlmError> {
        if let Some(error) = json.get("error") {
            return Err(self.error(error));
        }
        if !json.is_object() {
            return Err(bad_reply(&self.model, "the reply is not an object"));
        }
        let mut deltas = Vec::new();
        if let Some(name) = json["modelVersion"].as_str() {
            deltas.push(Delta::Model(ModelId::new(self.model.provider(), name)));
        }
        let candidates = json["candidates"].as_array().map(Vec::as_slice).unwrap_or_default();
        let first = candidates.iter().find(|one| one["index"].as_u64().unwrap_or(0) == 0);
        let mut stop = None;
        if let Some(candidate) = first {
            let parts = candidate["content"]["parts"].as_array();
            for part in parts.into_iter().flatten() {
                deltas.extend(self.part(part)?);
            }
            stop = candidate["finishReason"].as_str();
        }
        deltas.extend(self.usage(&json["usageMetadata"]));
        // Without a candidate, the prompt is blocked.
        let blocked = json["promptFeedback"]["blockReason"].is_string() && first.is_none();
        let stop = stop.map(|reason| self.stop(reason));
        if let Some(reason) = stop.or(blocked.then_some(StopReason::ContentFilter)) {
            deltas.push(Delta::Stop(reason));
            self.has_stopped = true;
        }
        // The usage may come after the reason.
        self.done = self.has_stopped && self.usage.input.is_some();
        Ok(deltas)
    }

    fn part(&mut self, part: &Value) -> Result<Vec<Delta>, LlmError> {
        let mut deltas = Vec::new();
        let text = part["text"].as_str();
        let (of, bytes) = if let Some(call) = part.get("functionCall") {
            let Some(name) = call["name"].as_str().filter(|name| !name.is_empty()) else {
                return Err(bad_reply(&self.model, "a `functionCall` has no `name`"));
            };
            let id = call["id"].as_str().filter(|id| !id.is_empty());
            let id = id.map_or_else(|| self.ids.next(), Into::into);
            let index = self.next_call;
            self.next_call += 1;
            deltas.push(Delta::CallStart { index, id, name: name.into() });
            match &call["args"] {
                Value::Null => {}
                args @ Value::Object(_) => {
                    deltas.push(Delta::CallArguments { index, fragment: args.to_string() });
                }
                _ => return Err(bad_reply(&self.model, "the `args` of a call are no object")),
            }
            deltas.push(Delta::CallEnd { index });
            ("call", 0)
        } else if part["thought"] == true {
            deltas.push(Delta::Reasoning(text.unwrap_or_default().to_owned()));
            ("thought", 0)
        } else if let Some(text) = text {
            deltas.push(Delta::Text(text.to_owned()));
            ("text", text.len())
        } else {
            // Such as executed code, which goes back as it is.
            deltas.push(self.opaque(json!({"part": part})));
            return Ok(deltas);
        };
        if let Some(signature) = part["thoughtSignature"].as_str() {
            let data = json!({"thoughtSignature": signature, "of": of, "bytes": bytes});
            deltas.push(self.opaque(data));
        }
        Ok(deltas)
    }

    fn opaque(&self, data: Value) -> Delta {
        Delta::Opaque { protocol: PROTOCOL.into(), model: self.model.clone(), data }
    }

    /// The usage so far. The counts are cumulative.
    fn usage(&mut self, json: &Value) -> Option<Delta> {
        let count = |field: &str| json[field].as_u64();
        let sum = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (Some(one), Some(two)) => Some(one.saturating_add(two)),
            (one, two) => one.or(two),
        };
        let thoughts = count("thoughtsTokenCount");
        let input = sum(count("promptTokenCount"), count("toolUsePromptTokenCount"));
        let output = sum(count("candidatesTokenCount"), thoughts);
        self.usage.input = input.or(self.usage.input);
        self.usage.output = output.or(self.usage.output);
        self.usage.reasoning = thoughts.or(self.usage.reasoning);
        self.usage.cache_read = count("cachedContentTokenCount").or(self.usage.cache_read);
        json.is_object().then_some(Delta::Usage(self.usage))
    }

    fn stop(&self, reason: &str) -> StopReason {
        match reason {
            "STOP" if self.next_call > 0 => StopReason::ToolCalls,
            "STOP" => StopReason::End,
            "MAX_TOKENS" => StopReason::MaxTokens,
            "SAFETY"
            | "RECITATION"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION" => StopReason::ContentFilter,
            other => StopReason::Other(other.to_owned()),
        }
    }

    fn error(&self, error: &Value) -> LlmError {
        let said = said_in(error);
        let kind = match said.code.as_deref() {
            _ if said.too_long => LlmErrorKind::ContextLength,
            Some("RESOURCE_EXHAUSTED") => LlmErrorKind::RateLimited { retry_after: said.wait },
            Some("UNAVAILABLE") => LlmErrorKind::Overloaded,
            Some("INTERNAL" | "DEADLINE_EXCEEDED" | "UNKNOWN" | "ABORTED") => {
                LlmErrorKind::Unavailable
            }
            Some("UNAUTHENTICATED" | "PERMISSION_DENIED") => LlmErrorKind::Auth,
            Some("NOT_FOUND") => LlmErrorKind::UnknownModel,
            Some("INVALID_ARGUMENT" | "FAILED_PRECONDITION" | "OUT_OF_RANGE") => {
                said.kind.unwrap_or(LlmErrorKind::InvalidRequest)
            }
            _ => LlmErrorKind::Stream,
        };
        inside(kind, &said, &self.model)
    }
}

impl Decode for Events {
    fn event(&mut self, data: &str) -> Result<Vec<Delta>, LlmError> {
        let json: Value = serde_json::from_str(data)
            .map_err(|_| bad_reply(&self.model, "an event is not JSON"))?;
        self.response(&json)
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

#[cfg(test)]
mod tests;
