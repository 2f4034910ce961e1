//! How an entry stores what was spent.

use serde::{Deserialize, Serialize};

use crate::llm::{Spend, Usage};

/// A spend, without its unknown parts.
#[derive(Serialize, Deserialize)]
pub(super) struct Spent {
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    input: Option<u64>,
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    output: Option<u64>,
    #[serde(rename = "cr", default, skip_serializing_if = "Option::is_none")]
    cache_read: Option<u64>,
    #[serde(rename = "cw", default, skip_serializing_if = "Option::is_none")]
    cache_write: Option<u64>,
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    reasoning: Option<u64>,
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    cost_micros: Option<u64>,
}

impl From<Spend> for Spent {
    fn from(Spend { usage, cost_micros }: Spend) -> Self {
        let Usage { input, output, cache_read, cache_write, reasoning } = usage;
        Self { input, output, cache_read, cache_write, reasoning, cost_micros }
    }
}

impl From<Spent> for Spend {
    fn from(spent: Spent) -> Self {
        let Spent { input, output, cache_read, cache_write, reasoning, cost_micros } = spent;
        Self { usage: Usage { input, output, cache_read, cache_write, reasoning }, cost_micros }
    }
}
