//! What tokens cost.

use harness::llm::Usage;
use std::collections::BTreeMap;

/// The price of a model, in US dollars per million tokens.
///
/// ```
/// use harness_providers::Price;
///
/// let price = Price::new(3.0, 15.0).cache_read(0.3).cache_write(3.75);
/// # let _ = price;
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

impl Price {
    /// The prices of input and output. Cached input costs the same, unless set.
    pub const fn new(input: f64, output: f64) -> Self {
        Self { input, output, cache_read: None, cache_write: None }
    }

    /// Sets the price of input that is read from a cache.
    #[must_use]
    pub const fn cache_read(mut self, price: f64) -> Self {
        self.cache_read = Some(price);
        self
    }

    /// Sets the price of input that is written to a cache.
    #[must_use]
    pub const fn cache_write(mut self, price: f64) -> Self {
        self.cache_write = Some(price);
        self
    }

    /// The cost in millionths of a US dollar, rounded up. `None` if the usage is not known.
    fn micros(&self, usage: &Usage) -> Option<u64> {
        let (input, output) = (usage.input?, usage.output?);
        let (read, write) = (usage.cache_read.unwrap_or(0), usage.cache_write.unwrap_or(0));
        let plain = input.saturating_sub(read.saturating_add(write));
        // Dollars per million tokens are millionths of a dollar per token.
        let sum = [
            (plain, self.input),
            (read, self.cache_read.unwrap_or(self.input)),
            (write, self.cache_write.unwrap_or(self.input)),
            (output, self.output),
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
}
