//! How often each step was entered.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How often each step was entered, in the order of the steps.
///
/// In one piece of memory: each entry of a step counts here, and a tree has its keys and its counts in two. Loops
/// have few steps, so no step is inserted often.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Visits<P>(Vec<(P, u32)>);

impl<P: Ord> Visits<P> {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn of(&self, step: &P) -> u32 {
        self.place(step).map_or(0, |at| self.0[at].1)
    }

    pub(crate) fn add(&mut self, step: &P, count: u32)
    where
        P: Clone,
    {
        match self.place(step) {
            Ok(at) => self.0[at].1 = self.0[at].1.saturating_add(count),
            Err(at) => self.0.insert(at, (step.clone(), count)),
        }
    }

    fn place(&self, step: &P) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.cmp(step))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&P, u32)> {
        self.0.iter().map(|(step, count)| (step, *count))
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&P) -> bool) {
        self.0.retain(|(step, _)| keep(step));
    }
}

impl<P: Ord> FromIterator<(P, u32)> for Visits<P> {
    fn from_iter<I: IntoIterator<Item = (P, u32)>>(visits: I) -> Self {
        Self(visits.into_iter().collect::<BTreeMap<_, _>>().into_iter().collect())
    }
}

impl<P: Ord + Serialize> Serialize for Visits<P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, P: Ord + Deserialize<'de>> Deserialize<'de> for Visits<P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(BTreeMap::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_stored_in_the_order_of_the_steps() {
        let mut visits = Visits::new();
        for step in ["send", "check", "send", "draft"] {
            visits.add(&step.to_owned(), 1);
        }
        let stored = serde_json::to_string(&visits).unwrap();
        assert_eq!(stored, r#"{"check":1,"draft":1,"send":2}"#);
        assert_eq!(serde_json::from_str::<Visits<String>>(&stored).unwrap(), visits);
        assert_eq!((visits.of(&"send".to_owned()), visits.of(&"none".to_owned())), (2, 0));
        visits.add(&"check".to_owned(), u32::MAX);
        assert_eq!(visits.of(&"check".to_owned()), u32::MAX);
        visits.retain(|step| step == "draft");
        assert_eq!(visits.iter().collect::<Vec<_>>(), [(&"draft".to_owned(), 1)]);
    }
}
