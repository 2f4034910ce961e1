//! Whether to try again, said by the error that knows.

use std::error::Error;
use std::fmt;
use std::time::Duration;

/// Whether trying again can help, and when.
///
/// An error offers its advice as its [`source`](Error::source), so that whoever handles errors of
/// many kinds finds it by walking the chain, without knowing the kinds. What would have been the
/// source goes behind the advice. [`LlmError`](super::LlmError) does so, and so can any other error:
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
/// // An error without advice leaves the decision to whoever asks.
/// assert!(Advice::find(&ShopError::NoArticle).is_none());
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Advice {
    /// Whether the same attempt may succeed later.
    pub retryable: bool,
    /// How long to wait first, if the other side said so.
    pub after: Option<Duration>,
    /// What caused the error that offers this advice.
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Advice {
    /// Trying again may help.
    pub fn retry() -> Self {
        Self { retryable: true, after: None, source: None }
    }

    /// Trying again fails the same way.
    pub fn give_up() -> Self {
        Self { retryable: false, ..Self::retry() }
    }

    /// Sets how long to wait before the next attempt.
    pub fn after(mut self, wait: impl Into<Option<Duration>>) -> Self {
        self.after = wait.into();
        self
    }

    /// Puts a cause behind the advice.
    pub fn because(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(cause.into());
        self
    }

    /// The first advice in an error and its sources: the outermost error knows most.
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
            (true, Some(after)) => write!(f, "trying again after {after:?} may help"),
            (true, None) => f.write_str("trying again may help"),
            (false, _) => f.write_str("trying again does not help"),
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
        insta::assert_snapshot!(after, @"trying again after 1.5s may help");
        insta::assert_snapshot!(Advice::retry(), @"trying again may help");
        insta::assert_snapshot!(Advice::give_up(), @"trying again does not help");
    }
}
