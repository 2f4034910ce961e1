//! What the protocols of OpenAI have in common: <https://developers.openai.com/docs/guides/error-codes>, as
//! of November 2026, and the guide "Structured outputs" of <https://platform.openai.com/docs>, section
//! "Supported schemas", as of February 2026.

use harness::llm::{LlmErrorKind, Usage};
use harness::testing::WireRequest;
use serde_json::{Value, json};

/// How an error is reported: its status and its object.
pub(crate) fn error(kind: LlmErrorKind, message: &str) -> Option<(u16, Value)> {
    let (status, name, code) = match kind {
        LlmErrorKind::RateLimited { .. } => (429, "requests", "rate_limit_exceeded"),
        LlmErrorKind::Overloaded => (503, "server_error", "server_is_overloaded"),
        LlmErrorKind::Auth => (401, "invalid_request_error", "invalid_api_key"),
        LlmErrorKind::InvalidRequest => (400, "invalid_request_error", "invalid_value"),
        LlmErrorKind::UnknownModel => (404, "invalid_request_error", "model_not_found"),
        LlmErrorKind::Unavailable => (500, "server_error", "server_error"),
        LlmErrorKind::ContextLength => (400, "invalid_request_error", "context_length_exceeded"),
        _ => return None,
    };
    Some((status, json!({"message": message, "type": name, "param": null, "code": code})))
}

pub(crate) fn body(error: &Value) -> String {
    json!({"error": error}).to_string()
}

pub(crate) fn rejection(what: &str) -> (u16, String) {
    (
        400,
        body(
            &json!({"message": what, "type": "invalid_request_error", "param": null, "code": null}),
        ),
    )
}

pub(crate) fn unauthorized(request: &WireRequest) -> Option<(u16, String)> {
    let key = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    // Its client trims an empty one.
    let missing = key.is_none() && request.header("authorization") != Some("Bearer");
    missing.then(|| (401, body(&json!({"message": "no key", "code": "invalid_api_key"}))))
}

/// Counts of tokens, by the names of a protocol.
pub(crate) fn usage(usage: Usage, input: &str, output: &str) -> Value {
    json!({
        input: usage.input,
        output: usage.output,
        "total_tokens": usage.total(),
        format!("{input}_details"): {
            "cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write,
        },
        format!("{output}_details"): {"reasoning_tokens": usage.reasoning},
    })
}

/// What is wrong with the format of an output.
pub(crate) fn format_fault(format: &Value) -> Option<&'static str> {
    if format.is_null() {
        return None;
    }
    let name = format["name"].as_str().unwrap_or_default();
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(legal) {
        return Some("the format has no legal name");
    }
    match format["strict"] == true {
        true => schema_fault(&format["schema"]),
        false => None,
    }
}

fn schema_fault(schema: &Value) -> Option<&'static str> {
    let Some(map) = schema.as_object() else { return Some("a schema is no object") };
    if map.contains_key("$ref") {
        return (map.len() > 1).then_some("$ref cannot have keywords");
    }
    for word in ["allOf", "not", "oneOf", "if", "default", "minLength", "prefixItems"] {
        if map.contains_key(word) {
            return Some("a keyword is not permitted");
        }
    }
    if schema["type"] == "object" {
        if schema["additionalProperties"] != false {
            return Some("'additionalProperties' is required to be false");
        }
        let Some(properties) = schema["properties"].as_object() else {
            return Some("an object has no properties");
        };
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        if !properties.keys().all(|name| required.contains(&json!(name))) {
            return Some("'required' has to include every key in properties");
        }
        return properties.values().find_map(schema_fault);
    }
    if !map.contains_key("type") && !map.contains_key("anyOf") {
        return Some("a schema must have a 'type' key");
    }
    let all = map.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    all.chain(map.get("items")).find_map(schema_fault)
}
