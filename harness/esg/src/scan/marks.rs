//! Sets of small numbers.

/// The size from which a set has a bit for each number.
const FEW: usize = 32;

/// A set of small numbers in insertion order.
#[derive(Clone, Default, Debug)]
pub(super) struct Marks {
    bits: Vec<u64>,
    list: Vec<u32>,
}

impl Marks {
    pub(super) fn insert(&mut self, id: u32) -> bool {
        if self.contains(id) {
            return false;
        }
        self.list.push(id);
        if self.list.len() > FEW {
            // At the first overflow no number has its bit yet.
            let from = if self.bits.is_empty() { 0 } else { self.list.len() - 1 };
            for &id in &self.list[from..] {
                let word = id as usize / 64;
                if word >= self.bits.len() {
                    self.bits.resize(word + 1, 0);
                }
                self.bits[word] |= 1 << (id % 64);
            }
        }
        true
    }

    pub(super) fn contains(&self, id: u32) -> bool {
        if self.bits.is_empty() {
            return self.list.contains(&id);
        }
        let word = self.bits.get(id as usize / 64).copied().unwrap_or(0);
        word & 1 << (id % 64) != 0
    }

    pub(super) fn list(&self) -> &[u32] {
        &self.list
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.bits.clear();
    }
}
