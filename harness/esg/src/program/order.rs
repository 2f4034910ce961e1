//! The order of steps. Inserting a step does not move the others.
/// The number of a step. It stays the same when the step moves, and is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot(u32);

impl Slot {
    pub(crate) fn new(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The distance of new labels: room for 32 insertions at one position.
const GAP: u64 = 1 << 32;

/// Slots in order. Each has a label, and labels grow along the order: two slots are compared by
/// their labels, and lists sorted by label stay sorted when labels are renewed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    slots: Vec<Slot>,
    /// By slot. A removed slot keeps its last label.
    labels: Vec<u64>,
}

impl Order {
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    pub(crate) fn label(&self, slot: Slot) -> u64 {
        self.labels.get(slot.index()).copied().unwrap_or(0)
    }

    /// The position of a slot.
    pub(crate) fn rank(&self, slot: Slot) -> usize {
        let label = self.label(slot);
        self.slots.partition_point(|other| self.label(*other) < label)
    }

    /// Inserts a slot at `rank`.
    pub(crate) fn insert(&mut self, rank: usize, slot: Slot) {
        if self.labels.len() <= slot.index() {
            self.labels.resize(slot.index() + 1, 0);
        }
        let rank = rank.min(self.slots.len());
        let label = self.between(rank).unwrap_or_else(|| {
            self.renew();
            self.between(rank).unwrap_or(u64::MAX)
        });
        self.labels[slot.index()] = label;
        self.slots.insert(rank, slot);
    }

    /// Removes a slot. It keeps its label, so it can still be compared.
    pub(crate) fn remove(&mut self, slot: Slot) {
        let rank = self.rank(slot);
        if self.slots.get(rank) == Some(&slot) {
            self.slots.remove(rank);
        }
    }

    /// A label between those around `rank`, if there is room.
    fn between(&self, rank: usize) -> Option<u64> {
        let low = rank.checked_sub(1).map_or(0, |before| self.label(self.slots[before]));
        match self.slots.get(rank) {
            None => low.checked_add(GAP),
            Some(next) => {
                let middle = low + (self.label(*next) - low) / 2;
                (middle > low).then_some(middle)
            }
        }
    }

    fn renew(&mut self) {
        for (rank, slot) in self.slots.iter().enumerate() {
            self.labels[slot.index()] = (rank as u64 + 1) * GAP;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn slots_stand_where_they_were_put(moves in prop::collection::vec((0usize..50, any::<bool>()), 0..200)) {
            let mut order = Order::default();
            let mut plain: Vec<Slot> = Vec::new();
            for (made, (at, remove)) in moves.into_iter().enumerate() {
                if remove && !plain.is_empty() {
                    let slot = plain.remove(at % plain.len());
                    order.remove(slot);
                } else {
                    let at = at % (plain.len() + 1);
                    plain.insert(at, Slot::new(made));
                    order.insert(at, Slot::new(made));
                }
            }
            prop_assert_eq!(order.slots(), &plain);
            for (rank, slot) in plain.iter().enumerate() {
                prop_assert_eq!(order.rank(*slot), rank);
            }
        }
    }

    #[test]
    fn one_place_takes_any_number() {
        let mut order = Order::default();
        order.insert(0, Slot::new(0));
        order.insert(1, Slot::new(1));
        for made in 2..500 {
            order.insert(1, Slot::new(made));
        }
        let expected: Vec<usize> = [0].into_iter().chain((2..500).rev()).chain([1]).collect();
        let found: Vec<usize> = order.slots().iter().map(|slot| slot.index()).collect();
        assert_eq!(found, expected);
        let labels = order.slots().iter().map(|slot| order.label(*slot));
        assert!(labels.is_sorted_by(|left, right| left < right));
    }
}
