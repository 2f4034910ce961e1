//! Errors as OpenAI and servers compatible with it report them.

use crate::failure::{Said, inside};
use harness::llm::{LlmError, LlmErrorKind, ModelId};
use serde_json::Value;

/// What the body of an error says.
pub(super) fn said(body: &[u8]) -> Said {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    match &json["error"] {
        // Some compatible servers have no `error` around it.
        Value::Null => said_in(&json),
        error => said_in(error),
    }
}

fn said_in(error: &Value) -> Said {
    let text = |field: &str| error[field].as_str().filter(|text| !text.is_empty());
    let message = error.as_str().or(text("message")).unwrap_or_default().to_ascii_lowercase();
    let code = text("code").or(text("type"));
    let too_long = code == Some("context_length_exceeded")
        || code == Some("exceed_context_size_error")
        || ["maximum context length", "context window", "context length exceeded"]
            .iter()
            .any(|words| message.contains(words));
    Said {
        code: code.map(str::to_owned),
        about: text("param").map(str::to_owned),
        too_long,
        kind: [text("code"), text("type")].into_iter().flatten().find_map(kind),
        ..Said::default()
    }
}

/// What a code means whose status says something else.
fn kind(code: &str) -> Option<LlmErrorKind> {
    match code {
        // Waiting does not help: the account has no money or no right left.
        "billing_hard_limit_reached"
        | "billing_not_active"
        | "credit_balance_exhausted"
        | "insufficient_quota"
        | "organization_spend_limit_exceeded"
        | "organization_usage_limit_exceeded"
        | "project_spend_limit_exceeded" => Some(LlmErrorKind::Auth),
        "invalid_api_key" => Some(LlmErrorKind::Auth),
        "model_not_found" => Some(LlmErrorKind::UnknownModel),
        _ => None,
    }
}

/// The error of an error that is reported inside a reply.
pub(super) fn of_reply(error: &Value, model: &ModelId) -> LlmError {
    let said = said_in(error);
    let kind = match said.code.as_deref() {
        _ if said.too_long => LlmErrorKind::ContextLength,
        _ if let Some(kind) = said.kind => kind,
        Some("rate_limit_exceeded" | "rate_limit_error") => {
            LlmErrorKind::RateLimited { retry_after: None }
        }
        Some("server_is_overloaded" | "slow_down" | "overloaded" | "service_unavailable") => {
            LlmErrorKind::Overloaded
        }
        Some("server_error" | "internal_error" | "internal_server_error") => {
            LlmErrorKind::Unavailable
        }
        Some("bio_policy" | "failed_to_download_image" | "data_residency_mismatch") => {
            LlmErrorKind::InvalidRequest
        }
        Some(code)
            if ["invalid_", "image_", "unsupported_", "empty_"]
                .iter()
                .any(|prefix| code.starts_with(prefix)) =>
        {
            LlmErrorKind::InvalidRequest
        }
        _ => LlmErrorKind::Stream,
    };
    inside(kind, &said, model)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::of_status;
    use reqwest::StatusCode;
    use serde_json::json;

    fn kind_of(status: u16, body: Value) -> LlmErrorKind {
        let said = said(body.to_string().as_bytes());
        let model = ModelId::new("openai", "gpt-x");
        of_status(StatusCode::from_u16(status).unwrap(), &said, None, &model).kind()
    }

    /// <https://developers.openai.com/docs/guides/error-codes> and
    /// <https://help.openai.com/en/articles/6614457>, as of November 2026.
    #[test]
    fn statuses_and_codes_have_their_kind() {
        let error = |name: &str, code: &str| json!({"error": {"message": "m", "type": name, "param": null, "code": code}});
        let limit = LlmErrorKind::RateLimited { retry_after: None };
        let cases = [
            (
                400,
                error("invalid_request_error", "context_length_exceeded"),
                LlmErrorKind::ContextLength,
            ),
            (400, error("invalid_request_error", "invalid_value"), LlmErrorKind::InvalidRequest),
            (400, error("invalid_request_error", "model_not_found"), LlmErrorKind::UnknownModel),
            (401, error("invalid_request_error", "invalid_api_key"), LlmErrorKind::Auth),
            (403, error("request_forbidden", "unsupported_country"), LlmErrorKind::Auth),
            (404, error("invalid_request_error", "model_not_found"), LlmErrorKind::UnknownModel),
            (429, error("requests", "rate_limit_exceeded"), limit),
            (429, error("insufficient_quota", "insufficient_quota"), LlmErrorKind::Auth),
            (429, error("rate_limit_error", "slow_down"), limit),
            (429, error("insufficient_quota", "project_spend_limit_exceeded"), LlmErrorKind::Auth),
            (429, error("", "credit_balance_exhausted"), LlmErrorKind::Auth),
            (500, error("server_error", ""), LlmErrorKind::Unavailable),
            (503, error("server_error", "slow_down"), LlmErrorKind::Overloaded),
            // Servers compatible with it.
            (
                400,
                json!({"error": "this model's maximum context length is 8"}),
                LlmErrorKind::ContextLength,
            ),
            (
                400,
                json!({"object": "error", "message": "maximum context length", "code": 400}),
                LlmErrorKind::ContextLength,
            ),
            (400, json!([]), LlmErrorKind::InvalidRequest),
        ];
        for (status, body, kind) in cases {
            assert_eq!(kind_of(status, body.clone()), kind, "{status} {body}");
        }
    }
}
