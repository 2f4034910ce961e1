//! The usage and cost of model calls.

use serde::{Deserialize, Serialize};
use std::iter::Sum;
use std::ops::AddAssign;

/// Tokens used. `None` means that the provider did not report that kind, which is not the same as
/// zero.
///
/// `input` and `output` are the two totals. The other kinds are parts of them: `cache_read` and
/// `cache_write` of `input`, `reasoning` of `output`. Adapters convert from the counting of their
/// provider. Additions saturate.
///
/// ```
/// use harness::llm::Usage;
///
/// let mut usage = Usage::tokens(100, 20);
/// usage += Usage { cache_read: Some(40), ..Usage::tokens(50, 5) };
/// assert_eq!(usage.input, Some(150));
/// assert_eq!(usage.cache_read, Some(40));
/// assert_eq!(usage.reasoning, None);
/// assert_eq!(usage.total(), Some(175));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// All tokens of the request, including cached ones.
    pub input: Option<u64>,
    /// All tokens of the reply, including reasoning.
    pub output: Option<u64>,
    /// The part of `input` that was read from a cache.
    pub cache_read: Option<u64>,
    /// The part of `input` that was written to a cache.
    pub cache_write: Option<u64>,
    /// The part of `output` that is reasoning.
    pub reasoning: Option<u64>,
}

impl Usage {
    /// A usage with the two totals.
    pub fn tokens(input: u64, output: u64) -> Self {
        Self { input: Some(input), output: Some(output), ..Self::default() }
    }

    /// Replaces each kind that `later` knows.
    pub(super) fn update(&mut self, later: Self) {
        let Self { input, output, cache_read, cache_write, reasoning } = later;
        self.input = input.or(self.input);
        self.output = output.or(self.output);
        self.cache_read = cache_read.or(self.cache_read);
        self.cache_write = cache_write.or(self.cache_write);
        self.reasoning = reasoning.or(self.reasoning);
    }

    /// Input plus output. `None` if neither is known.
    pub fn total(&self) -> Option<u64> {
        sum(self.input, self.output)
    }
}

/// The sum of the known values. `None` if both are unknown.
fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (known, None) | (None, known) => known,
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        let Self { input, output, cache_read, cache_write, reasoning } = other;
        self.input = sum(self.input, input);
        self.output = sum(self.output, output);
        self.cache_read = sum(self.cache_read, cache_read);
        self.cache_write = sum(self.cache_write, cache_write);
        self.reasoning = sum(self.reasoning, reasoning);
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, usage| {
            sum += usage;
            sum
        })
    }
}

/// The usage and cost of one or more exchanges with a provider.
///
/// ```
/// use harness::llm::{Spend, Usage};
///
/// let mut spend = Spend::from(Usage::tokens(100, 20));
/// spend += Spend { cost_micros: Some(1_500), ..Spend::default() };
/// assert_eq!(spend.cost_micros, Some(1_500)); // 0.0015 US dollars
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spend {
    /// The tokens.
    pub usage: Usage,
    /// The cost in millionths of a US dollar. `None` if it is unknown.
    pub cost_micros: Option<u64>,
}

impl From<Usage> for Spend {
    fn from(usage: Usage) -> Self {
        Self { usage, cost_micros: None }
    }
}

impl AddAssign for Spend {
    fn add_assign(&mut self, other: Self) {
        self.usage += other.usage;
        self.cost_micros = sum(self.cost_micros, other.cost_micros);
    }
}

impl Spend {
    /// What came to it since it was `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        let less = |now: Option<u64>, then: Option<u64>| {
            now.map(|now| now.saturating_sub(then.unwrap_or(0)))
        };
        let (now, then) = (self.usage, earlier.usage);
        let usage = Usage {
            input: less(now.input, then.input),
            output: less(now.output, then.output),
            cache_read: less(now.cache_read, then.cache_read),
            cache_write: less(now.cache_write, then.cache_write),
            reasoning: less(now.reasoning, then.reasoning),
        };
        Self { usage, cost_micros: less(self.cost_micros, earlier.cost_micros) }
    }
}

impl Sum for Spend {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, spend| {
            sum += spend;
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_is_not_zero() {
        let mut usage = Usage::default();
        usage += Usage::default();
        assert_eq!(usage, Usage::default());
        assert_eq!(usage.total(), None);
        usage.output = Some(3);
        assert_eq!(usage.total(), Some(3));
    }

    #[test]
    fn each_kind_is_summed_separately() {
        let one = Usage {
            input: Some(1),
            output: Some(2),
            cache_read: Some(3),
            cache_write: Some(4),
            reasoning: Some(5),
        };
        let two: Usage = [one, Usage::default(), one].into_iter().sum();
        let expected = Usage {
            input: Some(2),
            output: Some(4),
            cache_read: Some(6),
            cache_write: Some(8),
            reasoning: Some(10),
        };
        assert_eq!(two, expected);
        assert_eq!(two.total(), Some(6));
    }

    #[test]
    fn additions_saturate() {
        let mut usage = Usage::tokens(u64::MAX, 1);
        usage += Usage::tokens(1, 1);
        assert_eq!(usage, Usage::tokens(u64::MAX, 2));
        assert_eq!(usage.total(), Some(u64::MAX));
    }

    #[test]
    fn costs_are_summed_and_may_stay_unknown() {
        let cost = |cost_micros| Spend { cost_micros, ..Spend::default() };
        let sum: Spend = [cost(None), cost(Some(2)), cost(Some(3))].into_iter().sum();
        assert_eq!(sum.cost_micros, Some(5));
        let sum: Spend = [cost(None), cost(None)].into_iter().sum();
        assert_eq!(sum.cost_micros, None);
    }
}
