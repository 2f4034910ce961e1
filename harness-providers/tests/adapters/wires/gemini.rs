//! The Gemini API: <https://ai.google.dev/api/generate-content> and the pages "Function calling",
//! "Thought signatures", "Structured outputs" and "Troubleshooting" of <https://ai.google.dev/gemini-api/docs>,
//! and `types.py` of github.com/googleapis/python-genai, all as of August 2026.

use super::data;
use harness::llm::{Block, Delta, Llm, LlmErrorKind, Reply, StopReason, Usage};
use harness::testing::{Wire, WireRequest};
use harness_providers::Gemini;
use serde_json::{Value, json};
use std::sync::Arc;

/// The API with a model of this name.
pub(crate) struct GenerateContent(pub(crate) &'static str);

impl Wire for GenerateContent {
    fn adapter(&self, url: &str, key: &str) -> Arc<dyn Llm> {
        Arc::new(Gemini::new(self.0, key).base_url(url))
    }

    fn protocol(&self) -> &'static str {
        "gemini-generate-content"
    }

    fn whole(&self, reply: &Reply) -> String {
        let part = |block: &Block| match block {
            Block::Text(text) => json!({"text": text}),
            Block::Call { call, .. } => function_call(call.name.as_str(), &call.arguments),
            other => panic!("the suite has no {other:?}"),
        };
        let parts: Vec<_> = reply.turn.blocks.iter().map(part).collect();
        self.response(parts, Some(&reply.stop), reply.usage).to_string()
    }

    fn frames(&self, parts: &[Delta]) -> Vec<String> {
        let mut frames = Vec::new();
        let mut usage = Usage::default();
        let mut calls: Vec<(u64, String, String)> = Vec::new();
        for part in parts {
            let part = match part {
                Delta::Text(text) => json!({"text": text}),
                Delta::CallStart { index, name, .. } => {
                    calls.push((*index, name.to_string(), String::new()));
                    continue;
                }
                Delta::CallArguments { index, fragment } => {
                    let call = calls.iter_mut().find(|(known, ..)| known == index);
                    call.unwrap().2.push_str(fragment);
                    continue;
                }
                Delta::CallEnd { index } => {
                    let (_, name, arguments) =
                        calls.iter().find(|(known, ..)| known == index).unwrap();
                    function_call(name, arguments)
                }
                Delta::Usage(later) => {
                    usage = *later;
                    continue;
                }
                Delta::Stop(reason) => {
                    frames.push(data(&self.response(Vec::new(), Some(reason), usage)));
                    continue;
                }
                _ => continue,
            };
            // Every chunk has the counts so far.
            let so_far = Usage::tokens(1, 0);
            frames.push(data(&self.response(vec![part], None, so_far)));
        }
        frames
    }

    fn rejects(&self, request: &WireRequest) -> Option<(u16, String)> {
        if request.header("x-goog-api-key").is_none_or(str::is_empty) {
            return Some(error(
                403,
                "PERMISSION_DENIED",
                "Method doesn't allow unregistered callers",
            ));
        }
        let what = rejected(self.0, request)?;
        Some(error(400, "INVALID_ARGUMENT", what))
    }

    fn error(&self, kind: LlmErrorKind, message: &str) -> Option<(u16, String)> {
        let (status, name) = match kind {
            LlmErrorKind::RateLimited { .. } => (429, "RESOURCE_EXHAUSTED"),
            LlmErrorKind::Overloaded => (503, "UNAVAILABLE"),
            LlmErrorKind::Auth => (403, "PERMISSION_DENIED"),
            LlmErrorKind::InvalidRequest => (400, "INVALID_ARGUMENT"),
            LlmErrorKind::UnknownModel => (404, "NOT_FOUND"),
            LlmErrorKind::Unavailable => (500, "INTERNAL"),
            LlmErrorKind::ContextLength => {
                let long = format!(
                    "The input token count (9) exceeds the maximum number of tokens allowed (8). {message}"
                );
                return Some(error(400, "INVALID_ARGUMENT", &long));
            }
            _ => return None,
        };
        Some(error(status, name, message))
    }

    fn error_frame(&self, kind: LlmErrorKind, message: &str) -> Option<String> {
        let (_, body) = self.error(kind, message)?;
        Some(format!("data: {body}\n\n"))
    }

    fn streams(&self, request: &WireRequest) -> bool {
        request.path.ends_with(":streamGenerateContent?alt=sse")
    }

    fn has_stop(&self, reason: &StopReason) -> bool {
        *reason != StopReason::Refusal
    }

    fn reported(&self, usage: Usage) -> Usage {
        Usage { cache_write: None, ..usage }
    }

    fn has_text_arguments(&self) -> bool {
        false
    }

    fn opaque(&self, mark: &str) -> Option<Value> {
        Some(json!({"thoughtSignature": mark, "of": "text", "bytes": 0}))
    }
}

impl GenerateContent {
    fn response(&self, parts: Vec<Value>, stop: Option<&StopReason>, usage: Usage) -> Value {
        let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
        if let Some(stop) = stop {
            candidate["finishReason"] = json!(match stop {
                StopReason::End | StopReason::ToolCalls => "STOP",
                StopReason::MaxTokens => "MAX_TOKENS",
                StopReason::ContentFilter => "SAFETY",
                other => panic!("the suite has no {other:?}"),
            });
        }
        let thoughts = usage.reasoning.unwrap_or(0);
        let mut counts = json!({
            "promptTokenCount": usage.input,
            "candidatesTokenCount": usage.output.map(|output| output - thoughts),
            "totalTokenCount": usage.total(),
        });
        // Counts of zero are left out.
        if let Some(read) = usage.cache_read {
            counts["cachedContentTokenCount"] = json!(read);
        }
        if let Some(thoughts) = usage.reasoning {
            counts["thoughtsTokenCount"] = json!(thoughts);
        }
        json!({
            "candidates": [candidate],
            "usageMetadata": counts,
            "modelVersion": self.0,
            "responseId": "mAitaLmkHPPlz7IPvtfUqQ4",
        })
    }
}

/// Without an id, which is optional.
fn function_call(name: &str, arguments: &str) -> Value {
    let args: Value = serde_json::from_str(arguments).unwrap();
    json!({"functionCall": {"name": name, "args": args}})
}

fn error(status: u16, name: &str, message: &str) -> (u16, String) {
    let error = json!({"error": {"code": status, "message": message, "status": name}});
    (status, error.to_string())
}

/// What the vendor rejects of a request.
fn rejected(model: &str, request: &WireRequest) -> Option<&'static str> {
    let method = request.path.strip_prefix(&format!("/v1beta/models/{model}:"));
    if !["generateContent", "streamGenerateContent?alt=sse"].contains(&method.unwrap_or_default()) {
        return Some("no such method");
    }
    let body = &request.body;
    let contents = body["contents"].as_array().map(Vec::as_slice).unwrap_or_default();
    if contents.is_empty() {
        return Some("* GenerateContentRequest.contents: contents is not specified");
    }
    let mut called: Vec<(&Value, &Value)> = Vec::new();
    for content in contents {
        let parts = content["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
        let role = content["role"].as_str().unwrap_or_default();
        if parts.is_empty() || !["user", "model"].contains(&role) {
            return Some("Please use a valid role: user, model. Parts must not be empty.");
        }
        let of = |field: &str| -> Vec<(&Value, &Value)> {
            let parts = parts.iter().filter_map(|part| part.get(field));
            parts.map(|part| (&part["id"], &part["name"])).collect()
        };
        if of("functionResponse") != called {
            return Some(
                "Please ensure that the number of function response parts is equal to the number of \
                 function call parts of the function call turn.",
            );
        }
        called = of("functionCall");
        let signed = |part: &&Value| part.get("functionCall").is_some();
        let first = parts.iter().find(signed);
        if model.starts_with("gemini-3")
            && first.is_some_and(|part| !part["thoughtSignature"].is_string())
        {
            return Some("Function call is missing a thought_signature in functionCall parts.");
        }
        for part in parts {
            if let Some(call) = part.get("functionCall")
                && !call["args"].is_object()
            {
                return Some("Proto field is not repeating, cannot start list.");
            }
            if let Some(response) = part.get("functionResponse")
                && !response["response"].is_object()
            {
                return Some("function_response.response: Value is not a struct");
            }
            let data = ["functionCall", "functionResponse", "text", "inlineData", "fileData"];
            let fields = data.iter().filter(|field| part.get(**field).is_some()).count();
            let empty = part["text"] == "" && part.get("thoughtSignature").is_none();
            if fields != 1 || empty {
                return Some(
                    "contents.parts.data: required oneof field 'data' must have one value",
                );
            }
        }
    }
    let config = &body["generationConfig"];
    if config["seed"].as_i64().is_some_and(|seed| i32::try_from(seed).is_err()) {
        return Some("Invalid value at 'generation_config.seed' (TYPE_INT32)");
    }
    if config.get("responseJsonSchema").is_some()
        && config["responseMimeType"] != "application/json"
    {
        return Some("response_schema requires response_mime_type application/json");
    }
    let thinking = &config["thinkingConfig"];
    let (budget, level) = (thinking.get("thinkingBudget"), thinking.get("thinkingLevel"));
    match model.starts_with("gemini-2") {
        true if level.is_some() => return Some("Thinking level is not supported for this model."),
        _ if budget.is_some() && level.is_some() => return Some("You can only set one of them"),
        _ => {}
    }
    let names = &body["toolConfig"]["functionCallingConfig"];
    if names.get("allowedFunctionNames").is_some() && names["mode"] != "ANY" {
        return Some("allowed_function_names should only be set when mode is ANY");
    }
    None
}
