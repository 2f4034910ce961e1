//! What is known of effects that must not happen twice.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Effects by their key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct EffectTable(BTreeMap<String, EffectRecord>);

/// What is known of an effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EffectRecord {
    /// It was about to happen. Whether it did is not known.
    Intent,
    /// It happened: its result.
    Done(Value),
}

impl EffectTable {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, key: &str) -> Option<&EffectRecord> {
        self.0.get(key)
    }

    /// The first effect that was about to happen, and has no result.
    pub(super) fn in_doubt(&self) -> Option<&str> {
        let mut open = self.0.iter().filter(|(_, record)| **record == EffectRecord::Intent);
        open.next().map(|(key, _)| &**key)
    }

    pub(super) fn intend(&mut self, key: &str) {
        self.0.insert(key.to_owned(), EffectRecord::Intent);
    }

    /// An effect that was about to happen did not. One that happened stays.
    pub(super) fn forget_intent(&mut self, key: &str) {
        if self.0.get(key) == Some(&EffectRecord::Intent) {
            self.0.remove(key);
        }
    }

    pub(super) fn record(&mut self, key: &str, value: Value) {
        self.0.insert(key.to_owned(), EffectRecord::Done(value));
    }
}
