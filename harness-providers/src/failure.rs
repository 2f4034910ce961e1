//! Errors of exchanges.

use harness::llm::{LlmError, LlmErrorKind, ModelId};
use reqwest::StatusCode;
use std::time::Duration;

/// The longest name that an error shows of a provider's error.
const LONGEST: usize = 64;

/// What a provider says about a failed request, in its own names. Its message is left out, because it
/// may quote the request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    /// The type or code of the error.
    pub(crate) code: Option<String>,
    /// The part of the request that it is about.
    pub(crate) about: Option<String>,
    /// Whether it is about the length of the request.
    pub(crate) too_long: bool,
    /// What its code means, where the status alone means something else.
    pub(crate) kind: Option<LlmErrorKind>,
    /// The wait that it asks for, where no header does.
    pub(crate) wait: Option<Duration>,
}

/// The error of a response that is not a success.
pub(crate) fn of_status(
    status: StatusCode,
    said: &Said,
    retry_after: Option<Duration>,
    model: &ModelId,
) -> LlmError {
    let retry_after = retry_after.or(said.wait);
    let kind = match status.as_u16() {
        400 | 413 if said.too_long => LlmErrorKind::ContextLength,
        400..=499 if let Some(kind) = said.kind => kind,
        401..=403 => LlmErrorKind::Auth,
        404 => LlmErrorKind::UnknownModel,
        429 => LlmErrorKind::RateLimited { retry_after },
        503 | 529 => LlmErrorKind::Overloaded,
        408 | 409 | 500.. => LlmErrorKind::Unavailable,
        // Such as a base URL without `https`. It stays as it is when the call is repeated.
        300..=399 => LlmErrorKind::InvalidRequest,
        _ => LlmErrorKind::InvalidRequest,
    };
    let mut error = LlmError::new(kind)
        .with_model(model.clone())
        .with_detail(detail(&format!("HTTP status {}", status.as_u16()), said));
    if status.is_redirection() {
        error = error.with_remedy("no redirect is followed: check the base URL");
    }
    // Providers of overloaded models ask to wait as well.
    if !matches!(kind, LlmErrorKind::RateLimited { .. })
        && error.is_retryable()
        && retry_after.is_some()
    {
        error = error.with_advice(harness::llm::Advice::retry().after(retry_after));
    }
    error
}

/// An error that is reported inside of a reply.
pub(crate) fn inside(kind: LlmErrorKind, said: &Said, model: &ModelId) -> LlmError {
    LlmError::new(kind).with_model(model.clone()).with_detail(detail("reported in the reply", said))
}

pub(crate) fn bad_reply(model: &ModelId, what: &str) -> LlmError {
    LlmError::new(LlmErrorKind::BadReply).with_model(model.clone()).with_detail(what)
}

pub(crate) fn unsupported(model: &ModelId, what: &str) -> LlmError {
    LlmError::new(LlmErrorKind::Unsupported).with_model(model.clone()).with_detail(what)
}

fn detail(what: &str, said: &Said) -> String {
    let mut text = what.to_owned();
    if let Some(code) = said.code.as_deref().filter(|code| is_name(code)) {
        text.push_str(&format!(", `{code}`"));
    }
    if let Some(about) = said.about.as_deref().filter(|about| is_name(about)) {
        text.push_str(&format!(" at `{about}`"));
    }
    text
}

/// Whether it is a name or a path, and nothing that a request may hold.
fn is_name(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-[]".contains(&byte);
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(legal)
}
