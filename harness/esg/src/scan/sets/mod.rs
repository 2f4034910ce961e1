//! Sets of names in text order.
//!
//! The sets of one scan share its texts, so a name in many sets is stored once.
mod map;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

pub use map::NameMap;

/// Texts in ascending order, each once.
#[derive(Default)]
pub(super) struct Texts {
    all: String,
    ends: Vec<u32>,
}

impl Texts {
    /// From sorted texts without duplicates.
    pub(super) fn of<'t>(ordered: impl Iterator<Item = &'t str>) -> Self {
        let mut texts = Self::default();
        for text in ordered {
            texts.all.push_str(text);
            texts.ends.push(u32::try_from(texts.all.len()).unwrap_or(u32::MAX));
        }
        texts
    }

    fn get(&self, place: u32) -> &str {
        let place = place as usize;
        let end = |place: usize| self.ends.get(place).map_or(0, |end| *end as usize);
        let start = place.checked_sub(1).map_or(0, end);
        self.all.get(start..end(place)).unwrap_or_default()
    }
}

fn text(texts: Option<&Texts>, place: u32) -> &str {
    texts.map_or("", |texts| texts.get(place))
}

/// A set of names, in ascending order.
///
/// ```
/// let scan = harness_esg::scan("total = price * count");
/// assert_eq!(scan.reads.iter().collect::<Vec<_>>(), ["count", "price"]);
/// assert!(scan.reads.contains("price") && !scan.reads.contains("total"));
/// ```
#[derive(Clone, Default)]
pub struct NameSet {
    /// `None` if the set is empty.
    texts: Option<Arc<Texts>>,
    /// The sorted indices of its names in `texts`.
    places: Arc<[u32]>,
}

impl NameSet {
    /// From sorted indices without duplicates.
    pub(super) fn at(texts: &Arc<Texts>, places: Vec<u32>) -> Self {
        let texts = (!places.is_empty()).then(|| Arc::clone(texts));
        Self { texts, places: places.into() }
    }

    /// The number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Whether the set has this name.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        let texts = self.texts.as_deref();
        self.places.binary_search_by(|place| text(texts, *place).cmp(name)).is_ok()
    }

    /// Adds a name. Returns whether it is new. This copies the set: add many with `extend`.
    pub fn insert(&mut self, name: impl AsRef<str>) -> bool {
        let is_new = !self.contains(name.as_ref());
        if is_new {
            self.extend([name]);
        }
        is_new
    }

    /// The names, in ascending order.
    #[must_use]
    pub fn iter(&self) -> NameIter<'_> {
        NameIter { texts: self.texts.as_deref(), places: self.places.iter() }
    }
}

/// The names of a [`NameSet`], in ascending order.
#[derive(Clone)]
pub struct NameIter<'a> {
    texts: Option<&'a Texts>,
    places: std::slice::Iter<'a, u32>,
}

impl<'a> Iterator for NameIter<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.places.next().map(|place| text(self.texts, *place))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.places.size_hint()
    }
}

impl DoubleEndedIterator for NameIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.places.next_back().map(|place| text(self.texts, *place))
    }
}

impl ExactSizeIterator for NameIter<'_> {}

impl fmt::Debug for NameIter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl<'a> IntoIterator for &'a NameSet {
    type Item = &'a str;
    type IntoIter = NameIter<'a>;

    fn into_iter(self) -> NameIter<'a> {
        self.iter()
    }
}

impl<S: AsRef<str>> FromIterator<S> for NameSet {
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Self {
        let names: Vec<S> = names.into_iter().collect();
        let mut texts: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        texts.sort_unstable();
        texts.dedup();
        let places = (0..super::index::index(texts.len())).collect();
        Self::at(&Arc::new(Texts::of(texts.into_iter())), places)
    }
}

impl<S: AsRef<str>> Extend<S> for NameSet {
    fn extend<I: IntoIterator<Item = S>>(&mut self, names: I) {
        let names: Vec<S> = names.into_iter().collect();
        *self = self.iter().chain(names.iter().map(AsRef::as_ref)).collect();
    }
}

impl PartialEq for NameSet {
    fn eq(&self, other: &Self) -> bool {
        match (&self.texts, &other.texts) {
            (Some(mine), Some(theirs)) if Arc::ptr_eq(mine, theirs) => self.places == other.places,
            _ => self.iter().eq(other),
        }
    }
}

impl Eq for NameSet {}

impl fmt::Debug for NameSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self).finish()
    }
}

impl Serialize for NameSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self)
    }
}
