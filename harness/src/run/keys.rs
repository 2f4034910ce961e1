//! What the items of a step are called, for observers.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::id::Position;
use crate::step::{KeyBody, Place};

/// The longest key, in characters.
const MAX_KEY: usize = 256;

/// The keys of the items that were entered at a position.
#[derive(Default)]
pub(super) struct ItemKeys(Mutex<(Position, BTreeMap<u32, Arc<str>>)>);

impl ItemKeys {
    /// The key of the item at a place.
    pub(super) fn at(&self, place: Place) -> Option<Arc<str>> {
        let index = place.item?;
        let keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.1.get(&index).filter(|_| keys.0 == place.position).cloned()
    }

    /// Notes the key of an item that is about to be entered, if its step says one.
    pub(super) fn note(&self, key: Option<&KeyBody>, place: Place, item: &Value) {
        let (Some(key), Some(index)) = (key, place.item) else { return };
        let key: String = match catch_unwind(AssertUnwindSafe(|| key(item))) {
            Ok(Some(key)) => key.chars().take(MAX_KEY).collect(),
            // The body of the item says what is wrong with it.
            Ok(None) => return,
            Err(_) => {
                tracing::warn!(item = index, "the key of an item panicked: it has none");
                return;
            }
        };
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if keys.0 != place.position {
            *keys = (place.position, BTreeMap::new());
        }
        keys.1.insert(index, key.into());
    }
}
