//! What tokens cost.

use harness::llm::Usage;
use std::collections::BTreeMap;

/// The price of a model, in US dollars per million tokens.
///
/// It has the kinds of [`Usage`], which every adapter converts to: `input` has the cached tokens in it,
/// and `output` has the reasoning, which providers charge as output. The numbers here are examples:
///
/// ```
/// use harness_providers::Price;
///
/// let price = Price::new(3.0, 15.0).cache_read(0.3).cache_write(3.75);
/// // Some models cost more with a long request: all of its tokens, and those of the reply.
/// let tiered = price.above(200_000, Price::new(6.0, 22.5).cache_read(0.6).cache_write(7.5));
/// // A model on a machine of your own, for a budget that requires a price.
/// let own = Price::new(0.0, 0.0);
/// # let _ = (tiered, own);
/// ```
///
/// | adapter | reports as `cache_read` | as `cache_write` | as `reasoning` |
/// |---|---|---|---|
/// | `Anthropic` | input read from the cache | input written to it, of every duration | - |
/// | `Gemini` | cached content, implicit or by name | - | thoughts |
/// | `Ollama` | - | - | - |
/// | `OpenAiChat`, `OpenAiResponses` | input read from the cache | input written to it, if reported | reasoning |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    rates: Rates,
    /// The price of requests with more input than this.
    long: Option<(u64, Rates)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Rates {
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

impl Price {
    /// The prices of input and output. Cached input costs the same, unless set.
    pub const fn new(input: f64, output: f64) -> Self {
        Self { rates: Rates { input, output, cache_read: None, cache_write: None }, long: None }
    }

    /// Sets the price of input that is read from a cache.
    #[must_use]
    pub const fn cache_read(mut self, price: f64) -> Self {
        self.rates.cache_read = Some(price);
        self
    }

    /// Sets the price of input that is written to a cache.
    #[must_use]
    pub const fn cache_write(mut self, price: f64) -> Self {
        self.rates.cache_write = Some(price);
        self
    }

    /// Sets the price of an exchange with more input than `tokens`.
    #[must_use]
    pub const fn above(mut self, tokens: u64, price: Self) -> Self {
        self.long = Some((tokens, price.rates));
        self
    }

    /// The cost in millionths of a US dollar, rounded up. `None` if the usage is not known.
    fn micros(&self, usage: &Usage) -> Option<u64> {
        let (input, output) = (usage.input?, usage.output?);
        let rates = match self.long {
            Some((tokens, rates)) if input > tokens => rates,
            _ => self.rates,
        };
        let (read, write) = (usage.cache_read.unwrap_or(0), usage.cache_write.unwrap_or(0));
        let plain = input.saturating_sub(read.saturating_add(write));
        // Dollars per million tokens are millionths of a dollar per token.
        let sum = [
            (plain, rates.input),
            (read, rates.cache_read.unwrap_or(rates.input)),
            (write, rates.cache_write.unwrap_or(rates.input)),
            (output, rates.output),
        ];
        let sum: f64 = sum.into_iter().map(|(tokens, price)| tokens as f64 * price).sum();
        Some(sum.ceil() as u64)
    }
}

/// The prices of models, by name. Without a price, the cost of a call stays unknown.
///
/// Prices change, so there are none by default.
///
/// ```
/// use harness_providers::{Price, Prices};
///
/// let prices = Prices::new().with("claude-sonnet-4-5", Price::new(3.0, 15.0));
/// # let _ = prices;
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices(BTreeMap<String, Price>);

impl Prices {
    /// No prices.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the price of the models whose name begins with `model`. The longest name counts.
    #[must_use]
    pub fn with(mut self, model: impl Into<String>, price: Price) -> Self {
        self.0.insert(model.into(), price);
        self
    }

    pub(crate) fn cost_micros(&self, model: &str, usage: &Usage) -> Option<u64> {
        let known = self.0.iter().filter(|(name, _)| model.starts_with(name.as_str()));
        known.max_by_key(|(name, _)| name.len())?.1.micros(usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_input_has_its_own_price_and_the_longest_name_counts() {
        let prices = Prices::new()
            .with("m", Price::new(100.0, 100.0))
            .with("m-1", Price::new(3.0, 15.0).cache_read(0.3).cache_write(3.75));
        let usage = Usage { cache_read: Some(100), cache_write: Some(20), ..Usage::tokens(130, 2) };
        // 10 at 3, 100 at 0.3, 20 at 3.75, 2 at 15
        assert_eq!(prices.cost_micros("m-1-20260101", &usage), Some(165));
        assert_eq!(prices.cost_micros("m-2", &Usage::tokens(1, 1)), Some(200));
        assert_eq!(prices.cost_micros("x", &usage), None);
        assert_eq!(prices.cost_micros("m", &Usage::default()), None);
    }

    #[test]
    fn reasoning_is_output_and_a_long_request_has_its_own_price() {
        let price = Price::new(1.0, 10.0).above(100, Price::new(2.0, 20.0).cache_read(0.5));
        let prices = Prices::new().with("m", price);
        let usage = Usage { reasoning: Some(4), ..Usage::tokens(100, 6) };
        assert_eq!(prices.cost_micros("m", &usage), Some(160));
        // 61 at 2, 40 at 0.5, 6 at 20
        let long = Usage { cache_read: Some(40), ..Usage::tokens(101, 6) };
        assert_eq!(prices.cost_micros("m", &long), Some(262));
    }
}
