//! Why a step failed: as the error it returns, and as the failure that is stored.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::UtcMillis;
use crate::id::Position;
use crate::llm::Advice;
use crate::state::{OpsError, State};
use crate::text::bounded;

use super::ask_error::AskError;

/// How many sources of an error are followed.
const MAX_CHAIN: usize = 32;
/// How many bytes of each message are kept.
const MAX_MESSAGE: usize = 8 * 1024;
/// How many bytes of a code are kept.
const MAX_CODE: usize = 256;

/// The result of a step: an update of the state, or a failure.
pub type StepResult<S> = Result<<S as State>::Update, StepError>;

/// Why a step failed. It is either *retryable*, as every error that `?` converts is by default, or
/// *fatal*. The step's [`Retry`](crate::Retry) policy retries only the former.
///
/// `?` searches the chain of sources for an [`Advice`], which then decides whether and when to
/// retry. Every [`LlmError`](crate::llm::LlmError) has one. This type does not implement
/// [`Error`](std::error::Error), so that `?` can convert every error.
///
/// ```
/// use harness::{ResultExt as _, StepError};
///
/// fn parse(text: &str) -> Result<u32, StepError> {
///     let n: u32 = text.parse().fatal()?; // a retry cannot help
///     if n == 0 {
///         return Err(StepError::fatal("`n` is 0 (must be at least 1)"));
///     }
///     Ok(n)
/// }
/// assert!(parse("x").unwrap_err().is_fatal());
/// ```
pub struct StepError {
    // Boxed, so that a step's result is as small as its update.
    inner: Box<Inner>,
}

struct Inner {
    kind: FailureKind,
    retryable: bool,
    after: Option<Duration>,
    code: Option<String>,
    not_done: bool,
    source: Box<dyn Error + Send + Sync>,
}

impl StepError {
    /// Items of a step failed without a retry left. The message is that of the first.
    pub(crate) fn of_items(first: &Failure, at: usize, failed: usize, of: usize) -> Self {
        let message = format!("{failed} of {of} items failed; item {at}: {first}");
        let mut error = Self::of(first.kind, false, message);
        error.inner.code.clone_from(&first.code);
        error
    }

    fn new(kind: FailureKind, retryable: bool, source: Box<dyn Error + Send + Sync>) -> Self {
        Self {
            inner: Box::new(Inner {
                kind,
                retryable,
                after: None,
                code: None,
                not_done: false,
                source,
            }),
        }
    }

    /// A failure that a retry may fix.
    pub fn retryable(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(FailureKind::Error, true, source.into())
    }

    /// A failure that a retry cannot fix.
    pub fn fatal(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(FailureKind::Error, false, source.into())
    }

    pub(crate) fn of(kind: FailureKind, retryable: bool, message: String) -> Self {
        Self::new(kind, retryable, message.into())
    }

    /// An update that could not be folded into the state.
    pub(crate) fn unfolded(error: &OpsError) -> Self {
        let kind = if error.is_refused() { FailureKind::Refused } else { FailureKind::Encode };
        Self::of(kind, false, error.to_string())
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.inner.after
    }

    /// The same failure, with a minimum `delay` before the retry.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.inner.after = Some(delay);
        self
    }

    /// The same failure, with a code by which programs distinguish it, for example `gone`. The
    /// [`Failure`] keeps it.
    ///
    /// ```
    /// use harness::StepError;
    ///
    /// let error = StepError::fatal("the order was deleted").code("gone");
    /// assert_eq!(error.to_string(), "the order was deleted");
    /// ```
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.inner.code = Some(bounded(code.into(), MAX_CODE));
        self
    }

    /// The same failure, of an effect that surely did not happen: a request that was refused before
    /// anything was done. An effect that runs [at most once](crate::step::Once::at_most_once) is then
    /// not in doubt, and the next attempt runs it.
    ///
    /// ```
    /// use harness::{ResultExt as _, StepError};
    ///
    /// fn charge(status: u16) -> Result<(), StepError> {
    ///     match status {
    ///         503 => Err("the bank is busy").retryable().map_err(StepError::not_done),
    ///         _ => Ok(()),
    ///     }
    /// }
    /// assert!(!charge(503).unwrap_err().is_fatal());
    /// ```
    #[must_use]
    pub fn not_done(mut self) -> Self {
        self.inner.not_done = true;
        self
    }

    pub(super) fn is_not_done(&self) -> bool {
        self.inner.not_done
    }

    /// Whether a retry cannot fix it.
    pub fn is_fatal(&self) -> bool {
        !self.inner.retryable
    }

    /// The error that `?` converted, or the message.
    pub fn source(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.inner.source
    }
}

/// Any error: one of a type that implements [`Error`](std::error::Error), a boxed one, one of
/// `anyhow`, a text.
impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for StepError {
    fn from(error: E) -> Self {
        let error = error.into();
        let advice = chain(&*error).find_map(|cause| cause.downcast_ref::<Advice>());
        let retryable = advice.is_none_or(|advice| advice.retryable);
        let after = advice.and_then(|advice| advice.after);
        let asked = chain(&*error).find_map(|cause| cause.downcast_ref::<AskError>());
        let kind = match asked {
            Some(asked) if asked.is_question_changed() => FailureKind::QuestionChanged,
            _ => FailureKind::Error,
        };
        let mut failure = Self::new(kind, retryable, error);
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
            .field("code", &self.inner.code)
            .field("source", &self.inner.source)
            .finish()
    }
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let next = |error: &&'a (dyn Error + 'static)| (*error).source();
    std::iter::successors(Some(error), next).take(MAX_CHAIN)
}

/// Says of the error of a [`Result`] whether a retry may fix it.
///
/// ```
/// use harness::{ResultExt as _, StepError};
///
/// fn parse(text: &str) -> Result<u32, StepError> {
///     text.parse::<u32>().fatal()
/// }
/// assert!(parse("x").unwrap_err().is_fatal());
///
/// fn fetch() -> Result<u32, StepError> {
///     Err("the server is busy").retryable()
/// }
/// assert!(!fetch().unwrap_err().is_fatal());
/// ```
pub trait ResultExt<T> {
    /// Converts the error into a fatal [`StepError`].
    ///
    /// # Errors
    /// The same error, made fatal.
    fn fatal(self) -> Result<T, StepError>;

    /// Converts the error into a [`StepError`] that a retry may fix, whatever advice it has.
    ///
    /// # Errors
    /// The same error, made retryable.
    fn retryable(self) -> Result<T, StepError>;
}

impl<T, E: Into<StepError>> ResultExt<T> for Result<T, E> {
    fn fatal(self) -> Result<T, StepError> {
        self.map_err(|error| {
            let mut error: StepError = error.into();
            error.inner.retryable = false;
            error.inner.after = None;
            error
        })
    }

    fn retryable(self) -> Result<T, StepError> {
        self.map_err(|error| {
            let mut error: StepError = error.into();
            error.inner.retryable = true;
            error
        })
    }
}

/// A failure of a step, as stored in the log and the outcome: text and numbers, so that it can be
/// read on another machine and years later.
///
/// `Display` prints the message. `{:#}` adds the step, the attempts and the causes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Failure {
    /// The kind of the failure.
    pub kind: FailureKind,
    /// The step that failed.
    pub step: String,
    /// The entry into that step.
    pub position: Position,
    /// The number of attempts at that position.
    pub attempts: u32,
    /// Whether a retry may fix it.
    pub retryable: bool,
    /// The code that the step gave to it with [`StepError::code`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The message of the error.
    pub message: String,
    /// The messages of its causes, outermost first, without repetitions of the message before. At
    /// most 32 are kept, with at most 8 KiB each.
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
    /// The route panicked. The step's update is lost, with the state it was folded into.
    RoutePanic,
    /// A reducer panicked. The state it was changing is lost.
    ReducerPanic,
    /// A step that `.finally(..)` runs asked a question.
    AskInFinally,
    /// The steps of `.finally(..)` exceeded their own budget.
    FinallyBudget,
    /// A value that must be logged has no JSON form, for example a `NaN` from a reducer or in the
    /// result of an effect.
    Encode,
    /// A reducer [refused](crate::state::FieldOps::refuse) the update of the step.
    Refused,
    /// It is unknown whether an effect that must happen at most once did happen: the log has its
    /// intent but no result.
    InDoubt,
    /// A question was not answered in time.
    Expired,
    /// A step asks another question under a key than the one that was answered.
    QuestionChanged,
    /// Two items of a step set one field that has no reducer.
    ItemConflict,
    /// The store failed to read or write the session.
    Store,
    /// The run lost its lease: another run holds the session.
    LeaseLost,
    /// The process died several times at this position.
    CrashLoop,
    /// The session's log replays to another state than the reducers made.
    NotReplayable,
}

impl FailureKind {
    /// The name that it has in JSON, for metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Panic => "panic",
            Self::RoutePanic => "route_panic",
            Self::ReducerPanic => "reducer_panic",
            Self::AskInFinally => "ask_in_finally",
            Self::FinallyBudget => "finally_budget",
            Self::Encode => "encode",
            Self::Refused => "refused",
            Self::InDoubt => "in_doubt",
            Self::Expired => "expired",
            Self::QuestionChanged => "question_changed",
            Self::ItemConflict => "item_conflict",
            Self::Store => "store",
            Self::LeaseLost => "lease_lost",
            Self::CrashLoop => "crash_loop",
            Self::NotReplayable => "not_replayable",
        }
    }
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
            code: error.inner.code.clone(),
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
    fn a_deep_chain_is_truncated() {
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
    fn any_error_is_retryable_by_default() {
        let error: StepError = std::fmt::Error.into();
        assert!(!error.is_fatal());
        let failed: Result<(), _> = Err(std::fmt::Error);
        assert!(failed.fatal().unwrap_err().is_fatal());
        assert!(StepError::fatal("no").is_fatal());
    }

    #[test]
    fn every_kind_of_error_is_converted() {
        fn boxed() -> Result<(), StepError> {
            Err::<(), Box<dyn Error + Send + Sync>>("boxed".into())?;
            Ok(())
        }
        fn text() -> Result<(), StepError> {
            Err("text")?;
            Ok(())
        }
        fn owned() -> Result<(), StepError> {
            Err("owned".to_owned())?;
            Ok(())
        }
        fn itself() -> Result<(), StepError> {
            Err(StepError::fatal("itself").code("c"))?;
            Ok(())
        }
        for (failed, said) in [(boxed(), "boxed"), (text(), "text"), (owned(), "owned")] {
            let error = failed.unwrap_err();
            assert!(!error.is_fatal());
            assert_eq!(error.to_string(), said);
        }
        let error = itself().unwrap_err();
        assert!(error.is_fatal());
        assert_eq!(Failure::new(&error, "s", Position(1), 1).code.as_deref(), Some("c"));
    }

    #[test]
    fn retryable_and_fatal_overrule_the_advice() {
        let advised = || Err::<(), _>(Advice::give_up());
        assert!(StepError::from(advised().unwrap_err()).is_fatal());
        assert!(!advised().retryable().unwrap_err().is_fatal());
        assert!(Err::<(), _>("no").fatal().unwrap_err().is_fatal());
    }

    #[test]
    fn long_messages_are_truncated() {
        let failure = Failure::new(&StepError::fatal("x".repeat(100_000)), "s", Position(1), 1);
        assert!(failure.message.len() < 9_000);
    }
}
