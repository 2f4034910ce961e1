//! The interrupts of a position: found by their id and by who asked them, listed in the order of
//! asking.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::clock::UtcMillis;
use crate::id::InterruptId;
use crate::step::Interrupt;

use super::change::Resolution;

/// An interrupt of the position at work, and how it was resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AskedInterrupt {
    pub(crate) interrupt: Interrupt,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resolution: Option<Resolution>,
}

impl AskedInterrupt {
    /// Whether it still waits.
    pub(crate) fn is_open(&self) -> bool {
        self.resolution.is_none()
    }

    /// Whether it waits, and its time is over.
    pub(crate) fn is_overdue(&self, now: UtcMillis) -> bool {
        self.is_open() && self.interrupt.expires_at.is_some_and(|at| at <= now)
    }
}

/// Interrupts in the order in which they were asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupts {
    /// By the number of asking.
    asked: BTreeMap<u64, AskedInterrupt>,
    last: u64,
    by_id: HashMap<InterruptId, u64>,
    /// Those of the step, and of each of its items.
    by_item: BTreeMap<Option<u32>, Vec<u64>>,
    open: usize,
    /// One of them was withdrawn.
    withdrawn: bool,
}

impl Interrupts {
    pub(crate) fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    /// Whether any of them waits.
    pub(crate) fn any_open(&self) -> bool {
        self.open > 0
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &AskedInterrupt> {
        self.asked.values()
    }

    pub(crate) fn get(&self, id: &InterruptId) -> Option<&AskedInterrupt> {
        self.asked.get(self.by_id.get(id)?)
    }

    /// Those of a step, or of an item of it.
    pub(crate) fn of_item(&self, item: Option<u32>) -> impl Iterator<Item = &AskedInterrupt> {
        let numbers = self.by_item.get(&item).into_iter().flatten();
        numbers.filter_map(|number| self.asked.get(number))
    }

    /// The one that a step, or an item of it, asked under a key; of a gate, without one.
    pub(crate) fn under(&self, item: Option<u32>, key: Option<&str>) -> Option<&AskedInterrupt> {
        self.of_item(item).find(|asked| asked.interrupt.key.as_deref() == key)
    }

    /// Adds one that waits. It takes the place of the one under its key.
    pub(super) fn ask(&mut self, interrupt: Interrupt) {
        if std::mem::take(&mut self.withdrawn) {
            let kept = std::mem::take(self).asked.into_values();
            let kept = kept.filter(|old| old.resolution != Some(Resolution::Withdrawn));
            *self = kept.collect();
        }
        let before = self.under(interrupt.item, interrupt.key.as_deref());
        if let Some(id) = before.map(|before| before.interrupt.id.clone()) {
            self.remove(&id);
        }
        self.push(AskedInterrupt { interrupt, resolution: None });
    }

    /// Resolves one that waits. The error says whether there is one that does not.
    pub(super) fn resolve(&mut self, id: &InterruptId, with: Resolution) -> Result<(), NotOpen> {
        let asked = self.by_id.get(id).and_then(|number| self.asked.get_mut(number));
        let asked = asked.ok_or(NotOpen::Unknown)?;
        if !asked.is_open() {
            return Err(NotOpen::Resolved);
        }
        self.open -= 1;
        self.withdrawn |= with == Resolution::Withdrawn;
        asked.resolution = Some(with);
        Ok(())
    }

    /// Removes those of an item.
    pub(super) fn remove_item(&mut self, item: u32) {
        for number in self.by_item.remove(&Some(item)).into_iter().flatten() {
            if let Some(asked) = self.asked.remove(&number) {
                self.open -= usize::from(asked.is_open());
                self.by_id.remove(&asked.interrupt.id);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        if !self.is_empty() {
            *self = Self::default();
        }
    }

    fn push(&mut self, asked: AskedInterrupt) {
        self.last += 1;
        self.by_id.insert(asked.interrupt.id.clone(), self.last);
        self.by_item.entry(asked.interrupt.item).or_default().push(self.last);
        self.open += usize::from(asked.is_open());
        self.withdrawn |= asked.resolution == Some(Resolution::Withdrawn);
        self.asked.insert(self.last, asked);
    }

    fn remove(&mut self, id: &InterruptId) {
        let Some(number) = self.by_id.remove(id) else { return };
        let Some(asked) = self.asked.remove(&number) else { return };
        self.open -= usize::from(asked.is_open());
        if let Some(numbers) = self.by_item.get_mut(&asked.interrupt.item) {
            numbers.retain(|other| *other != number);
        }
    }
}

/// Why an interrupt cannot be resolved.
pub(super) enum NotOpen {
    Unknown,
    Resolved,
}

impl FromIterator<AskedInterrupt> for Interrupts {
    fn from_iter<I: IntoIterator<Item = AskedInterrupt>>(asked: I) -> Self {
        let mut interrupts = Self::default();
        asked.into_iter().for_each(|asked| interrupts.push(asked));
        interrupts
    }
}

impl IntoIterator for Interrupts {
    type Item = AskedInterrupt;
    type IntoIter = std::collections::btree_map::IntoValues<u64, AskedInterrupt>;

    fn into_iter(self) -> Self::IntoIter {
        self.asked.into_values()
    }
}

impl PartialEq for Interrupts {
    fn eq(&self, other: &Self) -> bool {
        self.asked.len() == other.asked.len() && self.iter().eq(other.iter())
    }
}

impl Serialize for Interrupts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Interrupts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<AskedInterrupt>::deserialize(deserializer)?.into_iter().collect())
    }
}
