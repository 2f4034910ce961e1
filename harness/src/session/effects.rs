//! What is known of effects that must not happen twice.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::store::FormerHolder;

use super::children::{ChildAt, ChildDone, KnownChild};

/// What the keys of the effects of a replay of code steps begin with; a number follows.
#[cfg(feature = "code")]
pub(crate) const REPLAY: &str = "replay/";

/// Whether an effect has a key of a replay.
#[cfg(all(feature = "code", feature = "report"))]
pub(crate) fn is_replay(key: &str) -> bool {
    key.strip_prefix(REPLAY).is_some_and(|nth| nth.parse::<u32>().is_ok())
}

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
    /// The same, of a run that did not settle: what is known of its process.
    Left(FormerHolder),
    /// It happened: its result.
    Done(Value),
    /// It is a session of its own.
    Child(Box<KnownChild>),
}

impl EffectRecord {
    /// What is known of the run that was about to make an effect without a result.
    pub(crate) fn in_doubt(&self) -> Option<FormerHolder> {
        match self {
            // A run waits for its effects: this one has ended without a result.
            Self::Intent => Some(FormerHolder::Released),
            Self::Left(former) => Some(*former),
            Self::Done(_) | Self::Child(_) => None,
        }
    }
}

/// The key of a child among effects.
fn child_key(key: &str) -> String {
    format!("child/{key}")
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
        let mut open = self.0.iter().filter(|(_, record)| record.in_doubt().is_some());
        open.next().map(|(key, _)| &**key)
    }

    pub(super) fn intend(&mut self, key: &str) {
        self.0.insert(key.to_owned(), EffectRecord::Intent);
    }

    /// An effect that was about to happen did not. One that happened stays.
    pub(super) fn forget_intent(&mut self, key: &str) {
        if self.0.get(key).is_some_and(|record| record.in_doubt().is_some()) {
            self.0.remove(key);
        }
    }

    /// The run that was about to make effects did not settle. A later one has not begun them.
    pub(super) fn leave(&mut self, former: FormerHolder) {
        for record in self.0.values_mut().filter(|record| **record == EffectRecord::Intent) {
            *record = EffectRecord::Left(former);
        }
    }

    pub(super) fn record(&mut self, key: &str, value: Value) {
        self.0.insert(key.to_owned(), EffectRecord::Done(value));
    }

    /// The child under a key.
    pub(super) fn child(&self, key: &str) -> Option<&KnownChild> {
        match self.0.get(&child_key(key)) {
            Some(EffectRecord::Child(child)) => Some(child),
            _ => None,
        }
    }

    pub(super) fn children(&self) -> impl Iterator<Item = &KnownChild> {
        self.0.values().filter_map(|record| match record {
            EffectRecord::Child(child) => Some(&**child),
            _ => None,
        })
    }

    pub(super) fn children_mut(&mut self) -> impl Iterator<Item = &mut KnownChild> {
        self.0.values_mut().filter_map(|record| match record {
            EffectRecord::Child(child) => Some(&mut **child),
            _ => None,
        })
    }

    /// A child is about to start, or a run of it has settled.
    pub(super) fn child_at(&mut self, at: &ChildAt) {
        let before = match self.child(&at.key) {
            Some(known) if known.at.session == at.session => known.before,
            Some(known) => known.before.saturating_add(1),
            None => 0,
        };
        let known = EffectRecord::Child(Box::new(KnownChild::new(at.clone(), before)));
        self.0.insert(child_key(&at.key), known);
    }

    /// The turn of a child is over. Says whether the child is known.
    pub(super) fn child_done(&mut self, done: &ChildDone) -> bool {
        let Some(EffectRecord::Child(known)) = self.0.get_mut(&child_key(&done.key)) else {
            return false;
        };
        (known.at.spent, known.at.due) = (done.spent, None);
        (known.done, known.waits) = (Some(Box::new(done.clone())), false);
        true
    }

    /// The last attempt waits for the children under these keys, and for no others.
    pub(super) fn wait_for_children(&mut self, keys: &[String]) {
        let waits = |child: &KnownChild| child.done.is_none() && keys.contains(&child.at.key);
        self.children_mut().for_each(|child| child.waits = waits(child));
    }
}
