//! Errors of model calls.

use super::{Advice, ModelId};
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// The greatest length of a detail. Texts of providers may be long.
const DETAIL: usize = 400;

/// Why a model call failed.
///
/// [`kind`](Self::kind) is the cause. [`Advice`] states whether a retry can help. It is also the
/// error's source, so callers find it in the chain without knowing this type.
///
/// The message and the sources hold no request, body, header or credential. Code that creates the
/// error must keep them out of its detail and cause.
///
/// ```
/// use harness::llm::{Advice, LlmError, LlmErrorKind};
/// use std::time::Duration;
///
/// let error = LlmError::new(LlmErrorKind::RateLimited { retry_after: Some(Duration::from_secs(3)) });
/// assert!(error.is_retryable());
/// assert_eq!(Advice::find(&error).and_then(|advice| advice.after), Some(Duration::from_secs(3)));
/// assert_eq!(error.to_string(), "the model is rate limited (try again after 3s)");
/// ```
pub struct LlmError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: LlmErrorKind,
    model: Option<ModelId>,
    detail: Option<String>,
    remedy: Option<String>,
    advice: Advice,
}

/// The cause of a failed model call.
///
/// A refusal is not an error: it is a reply with [`StopReason::Refusal`](super::StopReason).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LlmErrorKind {
    /// The rate limit is exceeded.
    RateLimited {
        /// The wait that the provider asks for.
        retry_after: Option<Duration>,
    },
    /// The provider has no capacity for any caller.
    Overloaded,
    /// The request exceeds the model's context length.
    ContextLength,
    /// A time limit was reached.
    Timeout {
        /// What timed out.
        phase: TimeoutPhase,
    },
    /// The provider rejected the credentials.
    Auth,
    /// The provider rejected the request.
    InvalidRequest,
    /// The model does not exist, or is not available with these credentials.
    UnknownModel,
    /// The protocol or the model does not support the request. Nothing was sent.
    Unsupported,
    /// The reply does not follow the protocol.
    BadReply,
    /// The reply ended early.
    Stream,
    /// The budget is used up. Nothing was sent.
    Budget,
    /// The provider is unreachable or had an internal error.
    Unavailable,
}

/// What timed out in a model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeoutPhase {
    /// Connecting.
    Connect,
    /// The start of the reply.
    Headers,
    /// The next part of the reply.
    Read,
    /// The complete reply.
    Total,
}

impl LlmErrorKind {
    /// A stable short name, for metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::RateLimited { .. } => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::ContextLength => "context_length",
            Self::Timeout { .. } => "timeout",
            Self::Auth => "auth",
            Self::InvalidRequest => "invalid_request",
            Self::UnknownModel => "unknown_model",
            Self::Unsupported => "unsupported",
            Self::BadReply => "bad_reply",
            Self::Stream => "stream",
            Self::Budget => "budget",
            Self::Unavailable => "unavailable",
        }
    }

    fn advice(&self) -> Advice {
        match self {
            Self::RateLimited { retry_after } => Advice::retry().after(*retry_after),
            Self::Overloaded
            | Self::Timeout { .. }
            | Self::BadReply
            | Self::Stream
            | Self::Unavailable => Advice::retry(),
            // What one model lacks, another may have.
            Self::ContextLength | Self::Auth | Self::UnknownModel | Self::Unsupported => {
                Advice::give_up().elsewhere(true)
            }
            Self::InvalidRequest | Self::Budget => Advice::give_up(),
        }
    }

    /// The cause, with the model as the subject, and the remedy.
    fn words(&self) -> (&'static str, &'static str) {
        match self {
            Self::RateLimited { .. } => ("is rate limited", "try again later"),
            Self::Overloaded => ("is overloaded", "try again later or use another model"),
            Self::ContextLength => (
                "cannot read a request this long",
                "shorten the transcript or use a model that reads more",
            ),
            Self::Timeout { phase } => (
                match phase {
                    TimeoutPhase::Connect => "could not be connected to in time",
                    TimeoutPhase::Headers => "did not begin to reply in time",
                    TimeoutPhase::Read => "paused its reply for too long",
                    TimeoutPhase::Total => "did not finish its reply in time",
                },
                "try again or allow more time",
            ),
            Self::Auth => ("did not accept the credentials", "check the key and what it may use"),
            Self::InvalidRequest => ("did not accept the request", "change the request"),
            Self::UnknownModel => {
                ("does not exist or is not available with this key", "check its name")
            }
            Self::Unsupported => {
                ("does not support the request", "remove the unsupported part or use another model")
            }
            Self::BadReply => {
                ("sent a reply that does not follow its protocol", "try again or use another model")
            }
            Self::Stream => ("ended its reply early", "try again"),
            Self::Budget => ("was not called because the budget is used up", "raise the budget"),
            Self::Unavailable => ("cannot be reached", "try again later or use another model"),
        }
    }
}

impl LlmError {
    /// Creates an error of a kind, with the advice for that kind.
    pub fn new(kind: LlmErrorKind) -> Self {
        Self(Box::new(Inner {
            kind,
            model: None,
            detail: None,
            remedy: None,
            advice: kind.advice(),
        }))
    }

    /// Sets the model that failed.
    #[must_use]
    pub fn with_model(mut self, model: ModelId) -> Self {
        self.0.model = Some(model);
        self
    }

    /// Sets details of the cause. Control characters become spaces, and long text is truncated. It
    /// must not hold requests, bodies, headers or credentials.
    #[must_use]
    pub fn with_detail(mut self, detail: impl AsRef<str>) -> Self {
        let mut chars = detail.as_ref().chars();
        let mut text: String =
            chars.by_ref().take(DETAIL).map(|c| if c.is_control() { ' ' } else { c }).collect();
        if chars.next().is_some() {
            text.push('…');
        }
        self.0.detail = Some(text);
        self
    }

    /// Sets the remedy, in place of the kind's own.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.0.remedy = Some(remedy.into());
        self
    }

    /// Replaces the advice of the kind, and its cause.
    #[must_use]
    pub fn with_advice(mut self, advice: Advice) -> Self {
        self.0.advice = advice;
        self
    }

    /// Sets the cause, as the source of the advice. Its message must not hold requests, bodies,
    /// headers or credentials either.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let advice = std::mem::replace(&mut self.0.advice, Advice::give_up());
        self.0.advice = advice.because(cause);
        self
    }

    /// The cause.
    pub fn kind(&self) -> LlmErrorKind {
        self.0.kind
    }

    /// The model that failed, if known.
    pub fn model(&self) -> Option<&ModelId> {
        self.0.model.as_ref()
    }

    /// Whether a retry can help, and when.
    pub fn advice(&self) -> &Advice {
        &self.0.advice
    }

    /// Whether a retry can help.
    pub fn is_retryable(&self) -> bool {
        self.0.advice.retryable
    }

    /// Whether the request is too long; a shorter transcript fixes that.
    pub fn is_context_length(&self) -> bool {
        matches!(self.0.kind, LlmErrorKind::ContextLength)
    }

    /// Whether the budget is used up.
    pub fn is_budget(&self) -> bool {
        matches!(self.0.kind, LlmErrorKind::Budget)
    }
}

impl fmt::Display for LlmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, model, detail, remedy, advice } = &*self.0;
        let (what, own) = kind.words();
        match model {
            Some(model) => write!(f, "model `{model}` {what}")?,
            None => write!(f, "the model {what}")?,
        }
        if let Some(detail) = detail {
            write!(f, ": {detail}")?;
        }
        match (remedy, advice.after) {
            (Some(remedy), _) => write!(f, " ({remedy})"),
            (None, Some(after)) if advice.retryable => write!(f, " (try again after {after:?})"),
            (None, _) => write!(f, " ({own})"),
        }
    }
}

impl fmt::Debug for LlmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LlmError")
            .field("kind", &self.0.kind)
            .field("model", &self.0.model)
            .field("detail", &self.0.detail)
            .field("advice", &self.0.advice)
            .finish()
    }
}

impl Error for LlmError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0.advice)
    }
}

#[cfg(test)]
mod tests;
