use std::error::Error;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::UtcMillis;
use crate::id::Position;
use crate::llm::Advice;
use crate::text::bounded;

/// How far a chain of sources is followed.
const MAX_CHAIN: usize = 32;
/// How many bytes of one message are kept.
const MAX_MESSAGE: usize = 8 * 1024;

/// Why a step failed: *retryable* (what `?` makes of any error) or *fatal*. That is the only axis:
/// the step's [`Retry`](crate::Retry) policy repeats the one and never the other.
///
/// `?` walks the chain of sources for an [`Advice`] and takes its word on whether and when to try
/// again; every [`LlmError`](crate::llm::LlmError) carries one. It is not itself an
/// [`Error`](std::error::Error), which is what lets `?` take every error.
///
/// ```
/// use harness::{Fatal, StepError};
///
/// fn parse(text: &str) -> Result<u32, StepError> {
///     let n: u32 = text.parse().fatal()?; // trying again will not help
///     if n == 0 {
///         return Err(StepError::fatal("`n` is 0 (must be at least 1)"));
///     }
///     Ok(n)
/// }
/// assert!(parse("x").unwrap_err().is_fatal());
/// ```
pub struct StepError {
    // Boxed, so that a step's result is no larger than its update.
    inner: Box<Inner>,
}

struct Inner {
    kind: FailureKind,
    retryable: bool,
    after: Option<Duration>,
    source: Box<dyn Error + Send + Sync>,
}

impl StepError {
    /// Items of a step failed for good: the first of them says why.
    pub(crate) fn of_items(first: &Failure, at: usize, failed: usize, of: usize) -> Self {
        let message = format!("{failed} of {of} items failed; item {at}: {first}");
        Self::of(first.kind, false, message)
    }

    fn new(kind: FailureKind, retryable: bool, source: Box<dyn Error + Send + Sync>) -> Self {
        Self { inner: Box::new(Inner { kind, retryable, after: None, source }) }
    }

    /// A failure that trying again may mend.
    pub fn retryable(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(FailureKind::Error, true, source.into())
    }

    /// A failure that trying again cannot mend.
    pub fn fatal(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(FailureKind::Error, false, source.into())
    }

    pub(crate) fn of(kind: FailureKind, retryable: bool, message: String) -> Self {
        Self::new(kind, retryable, message.into())
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.inner.after
    }

    /// The same failure, not to be tried again before `delay` has passed.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.inner.after = Some(delay);
        self
    }

    /// Whether trying again cannot mend it.
    pub fn is_fatal(&self) -> bool {
        !self.inner.retryable
    }

    /// The error that `?` took, or the message.
    pub fn source(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.inner.source
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for StepError {
    fn from(error: E) -> Self {
        let advice = chain(&error).find_map(|cause| cause.downcast_ref::<Advice>());
        let retryable = advice.is_none_or(|advice| advice.retryable);
        let after = advice.and_then(|advice| advice.after);
        let mut failure = Self::new(FailureKind::Error, retryable, Box::new(error));
        failure.inner.after = after;
        failure
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.source.fmt(f)
    }
}

impl fmt::Debug for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepError")
            .field("retryable", &self.inner.retryable)
            .field("after", &self.inner.after)
            .field("source", &self.inner.source)
            .finish()
    }
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let next = |error: &&'a (dyn Error + 'static)| (*error).source();
    std::iter::successors(Some(error), next).take(MAX_CHAIN)
}

/// Marks the error of a [`Result`] as one that trying again cannot mend.
pub trait Fatal<T> {
    /// Turns the error into a fatal [`StepError`].
    ///
    /// # Errors
    /// The error it was given, made fatal.
    fn fatal(self) -> Result<T, StepError>;
}

impl<T, E: Into<StepError>> Fatal<T> for Result<T, E> {
    fn fatal(self) -> Result<T, StepError> {
        self.map_err(|error| {
            let mut error: StepError = error.into();
            error.inner.retryable = false;
            error.inner.after = None;
            error
        })
    }
}

/// What went wrong in a step, as the log and the outcome keep it: text and numbers, so that it can
/// be read on another machine and in another year.
///
/// `Display` gives the message; `{:#}` adds the step, the attempts and the chain of causes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Failure {
    /// What kind of thing went wrong.
    pub kind: FailureKind,
    /// The step it went wrong in.
    pub step: String,
    /// The entry into that step.
    pub position: Position,
    /// How often the step was tried at that position.
    pub attempts: u32,
    /// Whether trying again may mend it.
    pub retryable: bool,
    /// The error's own words.
    pub message: String,
    /// The words of its causes, outermost first, without those that repeat the one before. At most
    /// 32 are kept, of each at most 8 KiB.
    pub causes: Vec<String>,
    /// When it happened.
    pub at: UtcMillis,
}

/// The kinds of [`Failure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// The step returned an error.
    Error,
    /// The step took longer than its `.timeout(..)`.
    Timeout,
    /// The step panicked.
    Panic,
    /// The route panicked: the step's update is lost with the state it was folded into.
    RoutePanic,
    /// A reducer panicked: the state it was changing is lost.
    ReducerPanic,
    /// A step that `.finally(..)` runs asked a question.
    AskInFinally,
    /// The steps of `.finally(..)` did not come to an end within their own budget.
    FinallyBudget,
    /// JSON cannot hold what is to be recorded: what a reducer made, or the result of an effect,
    /// holds a `NaN`, say.
    Encode,
    /// Nobody knows whether an effect that must happen at most once did happen: an intent is on
    /// record without a result.
    InDoubt,
    /// A question was not answered in time.
    Expired,
    /// Two items of a step set one field that has no reducer.
    ItemConflict,
    /// The store did not take or give what the session needs.
    Store,
    /// The run no longer holds its session: another one has taken it over.
    LeaseLost,
    /// The process died at this position again and again.
    CrashLoop,
    /// The session's log adds up to another state than the one its reducers made.
    NotReplayable,
}

impl Failure {
    pub(crate) fn new(error: &StepError, step: &str, position: Position, attempts: u32) -> Self {
        let message = bounded(error.source().to_string(), MAX_MESSAGE);
        let mut causes: Vec<String> = Vec::new();
        for cause in chain(error.source()).skip(1).filter(|cause| !cause.is::<Advice>()) {
            let text = bounded(cause.to_string(), MAX_MESSAGE);
            if causes.last().unwrap_or(&message) != &text {
                causes.push(text);
            }
        }
        Self {
            kind: error.inner.kind,
            step: step.to_owned(),
            position,
            attempts,
            retryable: error.inner.retryable,
            message,
            causes,
            at: UtcMillis::now(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if f.alternate() {
            write!(f, " (step `{}`, position {}", self.step, self.position)?;
            if self.attempts > 1 {
                write!(f, ", {} attempts", self.attempts)?;
            }
            f.write_str(")")?;
            for cause in &self.causes {
                write!(f, "\n  caused by: {cause}")?;
            }
        }
        Ok(())
    }
}

impl Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("level {level}")]
    struct Deep {
        level: usize,
        source: Option<Box<Deep>>,
    }

    fn deep(levels: usize) -> Deep {
        (0..levels).fold(Deep { level: 0, source: None }, |inner, level| Deep {
            level: level + 1,
            source: Some(Box::new(inner)),
        })
    }

    #[test]
    fn a_deep_chain_is_kept_up_to_a_bound() {
        let failure = Failure::new(&deep(10_000).into(), "think", Position(4), 2);
        assert_eq!(failure.message, "level 10000");
        assert_eq!(failure.causes.len(), MAX_CHAIN - 1);
        assert!(format!("{failure:#}").starts_with(
            "level 10000 (step `think`, position 4, 2 attempts)\n  caused by: level 9999\n"
        ));
        let again: Failure =
            serde_json::from_str(&serde_json::to_string(&failure).unwrap()).unwrap();
        assert_eq!(again, failure);
    }

    #[test]
    fn any_error_is_retryable_unless_told_otherwise() {
        let error: StepError = std::fmt::Error.into();
        assert!(!error.is_fatal());
        let failed: Result<(), _> = Err(std::fmt::Error);
        assert!(failed.fatal().unwrap_err().is_fatal());
        assert!(StepError::fatal("no").is_fatal());
    }

    #[test]
    fn long_messages_are_cut() {
        let failure = Failure::new(&StepError::fatal("x".repeat(100_000)), "s", Position(1), 1);
        assert!(failure.message.len() < 9_000);
    }
}
