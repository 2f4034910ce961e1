//! Charges each exchange once.

use crate::price::Prices;
use harness::llm::{CallCx, Delta, Spend, Usage};

/// Charges an exchange when it is dropped: after the reply, an error, or in the middle.
pub(crate) struct Bill<'a> {
    cx: &'a CallCx,
    prices: &'a Prices,
    model: &'a str,
    usage: Usage,
    /// Whether the request has reached the provider.
    sent: bool,
}

impl<'a> Bill<'a> {
    pub(crate) fn new(cx: &'a CallCx, prices: &'a Prices, model: &'a str) -> Self {
        Self { cx, prices, model, usage: Usage::default(), sent: true }
    }

    /// The request has not reached the provider: there is nothing to charge.
    pub(crate) fn not_sent(&mut self) {
        self.sent = false;
    }

    pub(crate) fn note(&mut self, delta: &Delta) {
        let Delta::Usage(later) = delta else { return };
        let before = self.usage;
        self.usage = Usage {
            input: later.input.or(before.input),
            output: later.output.or(before.output),
            cache_read: later.cache_read.or(before.cache_read),
            cache_write: later.cache_write.or(before.cache_write),
            reasoning: later.reasoning.or(before.reasoning),
        };
    }
}

impl Drop for Bill<'_> {
    fn drop(&mut self) {
        if self.sent {
            let cost_micros = self.prices.cost_micros(self.model, &self.usage);
            let mut spend = Spend::from(self.usage);
            spend.cost_micros = cost_micros;
            self.cx.charge(&spend);
        }
    }
}
