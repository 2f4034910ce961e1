//! Retry advice of errors.

use std::error::Error;
use std::fmt;
use std::time::Duration;

/// Whether a retry can help, and when.
///
/// An error returns its advice as its [`source`](Error::source), so callers find it in the chain
/// without knowing the error's type. The actual cause is the source of the advice.
/// [`LlmError`](super::LlmError) does this, and any other error can:
///
/// ```
/// use harness::llm::Advice;
/// use std::error::Error;
/// use std::time::Duration;
///
/// #[derive(Debug, thiserror::Error)]
/// enum ShopError {
///     #[error("the shop is closed")]
///     Closed(#[source] Advice),
///     #[error("there is no such article")]
///     NoArticle,
/// }
///
/// let closed = ShopError::Closed(Advice::retry().after(Duration::from_secs(60)));
/// let advice = Advice::find(&closed).ok_or("no advice")?;
/// assert!(advice.retryable);
/// assert_eq!(advice.after, Some(Duration::from_secs(60)));
///
/// // An error without advice leaves the decision to the caller.
/// assert!(Advice::find(&ShopError::NoArticle).is_none());
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Advice {
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// Whether another model may succeed now.
    pub elsewhere: bool,
    /// How long to wait first, if the provider says so.
    pub after: Option<Duration>,
    /// The cause of the error.
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Advice {
    /// A retry may help, and so may another model.
    pub fn retry() -> Self {
        Self { retryable: true, elsewhere: true, after: None, source: None }
    }

    /// A retry fails the same way, with any model.
    pub fn give_up() -> Self {
        Self { retryable: false, elsewhere: false, ..Self::retry() }
    }

    /// Sets whether another model may succeed.
    ///
    /// ```
    /// use harness::llm::Advice;
    ///
    /// let key_is_refused = Advice::give_up().elsewhere(true);
    /// assert!(!key_is_refused.retryable);
    /// ```
    pub fn elsewhere(mut self, may: bool) -> Self {
        self.elsewhere = may;
        self
    }

    /// Sets how long to wait before the next attempt.
    pub fn after(mut self, wait: impl Into<Option<Duration>>) -> Self {
        self.after = wait.into();
        self
    }

    /// Sets the cause.
    pub fn because(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(cause.into());
        self
    }

    /// The first advice in the chain of an error. The outermost error takes precedence.
    pub fn find<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(advice) = error.downcast_ref() {
                return Some(advice);
            }
            next = error.source();
        }
        None
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.retryable, self.after) {
            (true, Some(after)) => write!(f, "a retry after {after:?} may help"),
            (true, None) => f.write_str("a retry may help"),
            (false, _) => f.write_str("a retry does not help"),
        }
    }
}

impl Error for Advice {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] Box<dyn Error + Send + Sync>);

    #[test]
    fn advice_is_found_at_any_depth_and_the_outermost_wins() {
        let inner = Outer(Box::new(Advice::give_up()));
        let error = Outer(Box::new(Outer(Box::new(Advice::retry().because(inner)))));
        assert!(Advice::find(&error).unwrap().retryable);
        assert!(Advice::find(&Advice::retry()).is_some());
        assert!(Advice::find(&Outer("plain".into())).is_none());
    }

    #[test]
    fn a_cause_stays_in_the_chain() {
        let advice = Advice::give_up().because("cause");
        assert_eq!(advice.source().unwrap().to_string(), "cause");
    }

    #[test]
    fn advice_reads_as_a_sentence() {
        let after = Advice::retry().after(Duration::from_millis(1500));
        insta::assert_snapshot!(after, @"a retry after 1.5s may help");
        insta::assert_snapshot!(Advice::retry(), @"a retry may help");
        insta::assert_snapshot!(Advice::give_up(), @"a retry does not help");
    }
}
