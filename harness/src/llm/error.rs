//! Why a model call failed.

use super::{Advice, ModelId};
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// How much of a detail is kept: provider texts may be long.
const DETAIL: usize = 400;

/// Why a model call failed.
///
/// [`kind`](Self::kind) says what happened. Whether to try again is [`Advice`], which is also the
/// error's source, so that a caller of many kinds of errors finds it in the chain.
///
/// Neither the text nor the sources hold a request, a body, a header or a credential; whoever makes
/// the error keeps them out of detail and cause.
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

/// What happened when a model call failed.
///
/// A refusal is not among them: it is a reply with [`StopReason::Refusal`](super::StopReason).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LlmErrorKind {
    /// The caller asked too often.
    RateLimited {
        /// How long the provider asks to wait.
        retry_after: Option<Duration>,
    },
    /// The provider has no capacity left for anybody.
    Overloaded,
    /// The request is longer than the model can read.
    ContextLength,
    /// Something took too long.
    Timeout {
        /// What was waited for.
        phase: TimeoutPhase,
    },
    /// The provider did not accept the credentials.
    Auth,
    /// The provider did not accept the request.
    InvalidRequest,
    /// The provider does not know the model, or not for these credentials.
    UnknownModel,
    /// The request asks for something the protocol or the model cannot express. Nothing was sent.
    Unsupported,
    /// The reply does not follow the protocol.
    BadReply,
    /// The reply broke off before its end.
    Stream,
    /// A budget forbids the call. Nothing was sent.
    Budget,
    /// The provider cannot be reached, or failed inside.
    Unavailable,
}

/// What was waited for when a model call timed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeoutPhase {
    /// The connection.
    Connect,
    /// The first sign of a reply.
    Headers,
    /// The next piece of a reply.
    Read,
    /// The end of the reply.
    Total,
}

impl LlmErrorKind {
    /// A stable short name, for counting.
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
            Self::ContextLength
            | Self::Auth
            | Self::InvalidRequest
            | Self::UnknownModel
            | Self::Unsupported
            | Self::Budget => Advice::give_up(),
        }
    }

    /// What happened, with the model as the subject, and what to do about it.
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
                ("is not known to its provider, or not open to this key", "check its name")
            }
            Self::Unsupported => {
                ("cannot do what the request asks for", "leave that out or use another model")
            }
            Self::BadReply => {
                ("sent a reply that does not follow its protocol", "try again or use another model")
            }
            Self::Stream => ("broke off its reply", "try again"),
            Self::Budget => ("may not be called because the budget is spent", "raise the budget"),
            Self::Unavailable => ("cannot be reached", "try again later or use another model"),
        }
    }
}

impl LlmError {
    /// Makes an error of a kind, with the advice that fits it.
    pub fn new(kind: LlmErrorKind) -> Self {
        Self(Box::new(Inner {
            kind,
            model: None,
            detail: None,
            remedy: None,
            advice: kind.advice(),
        }))
    }

    /// Says which model failed.
    #[must_use]
    pub fn with_model(mut self, model: ModelId) -> Self {
        self.0.model = Some(model);
        self
    }

    /// Says more about what happened. Control characters become spaces and long texts are cut. It
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

    /// Says what to do about it, in place of the kind's own remedy.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.0.remedy = Some(remedy.into());
        self
    }

    /// Replaces the advice of the kind, and any cause behind it.
    #[must_use]
    pub fn with_advice(mut self, advice: Advice) -> Self {
        self.0.advice = advice;
        self
    }

    /// Puts a cause behind the advice. Its text, too, must not hold requests, bodies, headers or
    /// credentials.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let advice = std::mem::replace(&mut self.0.advice, Advice::give_up());
        self.0.advice = advice.because(cause);
        self
    }

    /// What happened.
    pub fn kind(&self) -> LlmErrorKind {
        self.0.kind
    }

    /// Which model failed, when that is known.
    pub fn model(&self) -> Option<&ModelId> {
        self.0.model.as_ref()
    }

    /// Whether to try again.
    pub fn advice(&self) -> &Advice {
        &self.0.advice
    }

    /// Whether trying again can help.
    pub fn is_retryable(&self) -> bool {
        self.0.advice.retryable
    }

    /// Whether the request is too long, which a shorter transcript cures.
    pub fn is_context_length(&self) -> bool {
        matches!(self.0.kind, LlmErrorKind::ContextLength)
    }

    /// Whether a budget forbids the call.
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
