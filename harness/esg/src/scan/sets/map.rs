//! Sets of names by name.
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::{NameSet, Texts, text};

/// For some names a [`NameSet`] each, in ascending order.
///
/// ```
/// let scan = harness_esg::scan("def area(r): return pi * r ** 2");
/// assert!(scan.summaries.get("area").is_some_and(|names| names.contains("pi")));
/// ```
#[derive(Clone, Default)]
pub struct NameMap {
    /// None where it has no name.
    texts: Option<Arc<Texts>>,
    /// The places of the names among the texts, in ascending order, and what each has.
    entries: Vec<(u32, NameSet)>,
}

impl NameMap {
    /// The map from the texts at these places, which are in order, each once.
    pub(in super::super) fn at(texts: &Arc<Texts>, entries: Vec<(u32, NameSet)>) -> Self {
        let texts = (!entries.is_empty()).then(|| Arc::clone(texts));
        Self { texts, entries }
    }

    /// How many names have a set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no name has a set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The set of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&NameSet> {
        let texts = self.texts.as_deref();
        let found = self.entries.binary_search_by(|(place, _)| text(texts, *place).cmp(name));
        found.ok().and_then(|at| self.entries.get(at)).map(|(_, set)| set)
    }

    /// Whether a name has a set.
    #[must_use]
    pub fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Sets the set of a name. This copies the map: add many with `extend`.
    pub fn insert(&mut self, name: impl AsRef<str>, set: NameSet) {
        self.extend([(name, set)]);
    }

    /// The names and their sets, in ascending order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &NameSet)> {
        let texts = self.texts.as_deref();
        self.entries.iter().map(move |(place, set)| (text(texts, *place), set))
    }

    /// The names that have a set, in ascending order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.iter().map(|(name, _)| name)
    }

    /// The sets, in the order of their names.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &NameSet> {
        self.entries.iter().map(|(_, set)| set)
    }
}

impl<S: AsRef<str>> FromIterator<(S, NameSet)> for NameMap {
    /// The last set of a name wins.
    fn from_iter<I: IntoIterator<Item = (S, NameSet)>>(sets: I) -> Self {
        let sets = sets.into_iter().map(|(name, set)| (name.as_ref().to_owned(), set));
        let sets: BTreeMap<String, NameSet> = sets.collect();
        let texts = Arc::new(Texts::of(sets.keys().map(String::as_str)));
        Self::at(&texts, (0..).zip(sets.into_values()).collect())
    }
}

impl<S: AsRef<str>> Extend<(S, NameSet)> for NameMap {
    fn extend<I: IntoIterator<Item = (S, NameSet)>>(&mut self, sets: I) {
        let mine = self.iter().map(|(name, set)| (name.to_owned(), set.clone()));
        let more = sets.into_iter().map(|(name, set)| (name.as_ref().to_owned(), set));
        *self = mine.chain(more).collect();
    }
}

impl PartialEq for NameMap {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for NameMap {}

impl fmt::Debug for NameMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Serialize for NameMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}
