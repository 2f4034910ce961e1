use std::time::Duration;

use backon::{BackoffBuilder, ConstantBuilder, ExponentialBuilder};

/// How often, and after what delay, a failed step is retried.
///
/// Delays are computed by the `backon` crate, with jitter. If the error has a delay of its own
/// (such as `Retry-After`; see [`Advice`](crate::llm::Advice)), the longer of the two applies. Only
/// retryable failures are retried, not panics or fatal errors.
///
/// ```
/// use std::time::Duration;
/// use harness::Retry;
///
/// let patient = Retry::exponential().times(5).first(Duration::from_millis(200));
/// let stubborn = Retry::every(Duration::from_secs(1)).times(2);
/// # let _ = (patient, stubborn);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    times: u32,
    first: Duration,
    longest: Duration,
    doubling: bool,
    jitter: bool,
}

impl Retry {
    /// Delays that double from 500 ms up to 30 s, with jitter. Three retries.
    pub fn exponential() -> Self {
        Self {
            times: 3,
            first: Duration::from_millis(500),
            longest: Duration::from_secs(30),
            doubling: true,
            jitter: true,
        }
    }

    /// The same delay for each retry, without jitter. Three retries.
    pub fn every(delay: Duration) -> Self {
        Self { times: 3, first: delay, longest: delay, doubling: false, jitter: false }
    }

    /// The number of retries: 3 means at most four attempts.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = times;
        self
    }

    /// The first delay.
    #[must_use]
    pub fn first(mut self, delay: Duration) -> Self {
        self.first = delay;
        self.longest = self.longest.max(delay);
        self
    }

    /// The longest delay.
    #[must_use]
    pub fn longest(mut self, delay: Duration) -> Self {
        self.longest = delay;
        self
    }

    /// Disables the jitter, so that delays are predictable.
    #[must_use]
    pub fn without_jitter(mut self) -> Self {
        self.jitter = false;
        self
    }

    pub(crate) fn allows(&self, retries_so_far: u32) -> bool {
        retries_so_far < self.times
    }

    /// The delay before retry number `retry`, which counts from 0.
    pub(crate) fn delay(&self, retry: u32) -> Duration {
        let nth = retry as usize;
        let delay = if self.doubling {
            let builder = ExponentialBuilder::new()
                .with_min_delay(self.first)
                .with_max_delay(self.longest)
                .with_max_times(nth + 1);
            if self.jitter {
                builder.with_jitter().build().nth(nth)
            } else {
                builder.build().nth(nth)
            }
        } else {
            let builder = ConstantBuilder::new().with_delay(self.first).with_max_times(nth + 1);
            if self.jitter {
                builder.with_jitter().build().nth(nth)
            } else {
                builder.build().nth(nth)
            }
        };
        delay.unwrap_or(self.longest)
    }
}

/// The policies of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Policy {
    pub(crate) retry: Option<Retry>,
    pub(crate) timeout: Option<Duration>,
    /// How long after it was entered the step runs.
    pub(crate) after: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest() {
        let retry = Retry::exponential()
            .first(Duration::from_secs(1))
            .longest(Duration::from_secs(5))
            .without_jitter();
        let secs: Vec<u64> = (0..5).map(|nth| retry.delay(nth).as_secs()).collect();
        assert_eq!(secs, [1, 2, 4, 5, 5]);
        assert_eq!(Retry::every(Duration::from_secs(3)).delay(7).as_secs(), 3);
    }

    #[test]
    fn times_counts_retries_not_attempts() {
        let retry = Retry::exponential().times(2);
        assert!(retry.allows(0) && retry.allows(1) && !retry.allows(2));
    }
}
