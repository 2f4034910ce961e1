//! The reducer of maps.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::state::FieldOps;

/// Reducer `merge`: inserts the entries of the update. Later entries replace earlier ones.
///
/// ```
/// use std::collections::BTreeMap;
/// use harness::state::{Merge, Ops};
///
/// let mut prices = BTreeMap::from([("tea", 2)]);
/// let entries = [("tea", 3), ("milk", 1)].into_iter().collect();
/// prices.merge_entries(entries, &mut Ops::off().field("prices"));
/// assert_eq!(prices, BTreeMap::from([("milk", 1), ("tea", 3)]));
/// ```
#[diagnostic::on_unimplemented(
    message = "reducer `merge` cannot fold a field of type `{Self}`",
    label = "cannot fold `{Self}`",
    note = "`merge` supports `BTreeMap<K, V>` and `HashMap<K, V>`"
)]
pub trait Merge {
    /// The keys of the map.
    type Key;
    /// The values of the map.
    type Value;

    /// Inserts the entries and records them.
    fn merge_entries(&mut self, entries: Entries<Self::Key, Self::Value>, ops: &mut FieldOps<'_>);
}

impl<K: Ord + Serialize, V: Serialize> Merge for BTreeMap<K, V> {
    type Key = K;
    type Value = V;

    fn merge_entries(&mut self, entries: Entries<K, V>, ops: &mut FieldOps<'_>) {
        entries.0.iter().for_each(|(key, value)| ops.put(key, value));
        self.extend(entries.0);
    }
}

impl<K: Eq + Hash + Serialize, V: Serialize, S: BuildHasher> Merge for HashMap<K, V, S> {
    type Key = K;
    type Value = V;

    fn merge_entries(&mut self, entries: Entries<K, V>, ops: &mut FieldOps<'_>) {
        entries.0.iter().for_each(|(key, value)| ops.put(key, value));
        self.extend(entries.0);
    }
}

/// Entries for a map, in the order given. Stored as a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entries<K, V>(Vec<(K, V)>);

impl<K, V> Default for Entries<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K, V> Extend<(K, V)> for Entries<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        self.0.extend(entries);
    }
}

impl<K, V> FromIterator<(K, V)> for Entries<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl<K: Serialize, V: Serialize> Serialize for Entries<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de> for Entries<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs<K, V>(PhantomData<(K, V)>);

        impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Visitor<'de> for Pairs<K, V> {
            type Value = Entries<K, V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(Pairs(PhantomData))
    }
}
