//! The items of a step that has several: what each of them is, and what is known of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::step::Failure;

use super::effects::EffectTable;
use super::timers::Timers;

/// The items of a step were computed. They are recorded whole, so that a resumed run works on the
/// same ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Planned {
    /// The items, in their order.
    pub items: Vec<Value>,
}

/// An item of a step is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ItemDone {
    /// Which item, from 0.
    #[serde(rename = "i")]
    pub index: u32,
    /// What came of it.
    #[serde(flatten)]
    pub result: ItemResult,
}

/// What came of an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ItemResult {
    /// Its result.
    #[serde(rename = "v")]
    Done(Value),
    /// It failed for good.
    #[serde(rename = "failure")]
    Failed(Arc<Failure>),
}

/// The items of the position at work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Items {
    /// The items, in their order.
    pub(crate) planned: Vec<Value>,
    /// What came of those that are done.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) done: BTreeMap<u32, ItemResult>,
    /// What is known of those that are not.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) work: BTreeMap<u32, ItemWork>,
}

/// What is known of an item that is not done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ItemWork {
    /// How often it is known to have been tried.
    #[serde(default)]
    pub(crate) attempt: u32,
    /// How many of those were retries, since the last resume.
    #[serde(default)]
    pub(crate) retries: u32,
    #[serde(default, skip_serializing_if = "EffectTable::is_empty")]
    pub(crate) effects: EffectTable,
    #[serde(default, skip_serializing_if = "Timers::is_empty")]
    pub(crate) timers: Timers,
}

impl Items {
    /// Whether all items are done.
    pub(crate) fn are_done(&self) -> bool {
        self.done.len() >= self.planned.len()
    }

    /// The indices of the items that are not done.
    pub(crate) fn open(&self) -> impl Iterator<Item = u32> + '_ {
        let count = u32::try_from(self.planned.len()).unwrap_or(u32::MAX);
        (0..count).filter(|index| !self.done.contains_key(index))
    }
}
