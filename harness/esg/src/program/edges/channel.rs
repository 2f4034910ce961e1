//! The readers and writers of one channel, in program order.
use super::super::order::{Order, Slot};

/// How a step uses a channel: a set of the flags below.
pub(super) type How = u8;

/// It loads it.
pub(super) const READ: How = 1;
/// Functions of other steps that it calls load it.
pub(super) const LATE: How = 1 << 1;
/// It changes the object without loading it.
pub(super) const ALIAS: How = 1 << 2;
/// It may bind, unbind or change it.
pub(super) const WRITE: How = 1 << 3;
/// It surely binds it.
pub(super) const SURE: How = 1 << 4;
/// It binds it to something with a body that may run later.
pub(super) const BODY: How = 1 << 5;
/// It may change the object that comes in.
pub(super) const CHANGE: How = 1 << 6;
/// Functions that it calls may bind it or change its object, or it changes the object through
/// another name.
pub(super) const AFAR: How = 1 << 7;

/// What follows from other steps, and is derived again when they change.
pub(super) const DERIVED: How = LATE | ALIAS | AFAR;
/// Any way to read.
pub(super) const READS: How = READ | LATE | ALIAS;
/// Any way to write.
pub(super) const WRITES: How = WRITE | SURE | BODY | CHANGE | AFAR;

/// One step's use of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) slot: Slot,
    pub(super) how: How,
}

/// The uses of one channel.
#[derive(Clone, Debug, Default)]
pub(super) struct Channel {
    readers: Vec<Use>,
    writers: Vec<Use>,
    /// How many writers bind a body to it.
    pub(super) bodies: u32,
}

impl Channel {
    /// A channel with room for so many uses.
    pub(super) fn new(readers: usize, writers: usize) -> Self {
        let (readers, writers) = (Vec::with_capacity(readers), Vec::with_capacity(writers));
        Self { readers, writers, bodies: 0 }
    }

    pub(super) fn add(&mut self, order: &Order, slot: Slot, how: How) {
        if how & READS != 0 {
            add(&mut self.readers, order, slot, how & READS);
        }
        if how & WRITES != 0 {
            let old = add(&mut self.writers, order, slot, how & WRITES);
            if how & BODY != 0 && old & BODY == 0 {
                self.bodies += 1;
            }
        }
    }

    /// Removes flags of a step's use.
    pub(super) fn take(&mut self, order: &Order, slot: Slot, how: How) {
        take(&mut self.readers, order, slot, how & READS);
        let old = take(&mut self.writers, order, slot, how & WRITES);
        if how & BODY != 0 && old & BODY != 0 {
            self.bodies -= 1;
        }
    }

    /// The writers whose value may reach a slot: those before it, last first, up to and including
    /// the last that surely binds.
    pub(super) fn reaching(&self, order: &Order, slot: Slot) -> impl Iterator<Item = Use> {
        let before = self.writers_before(order, slot);
        let mut covered = false;
        before.iter().rev().copied().take_while(move |writer| {
            let more = !covered;
            covered |= writer.how & SURE != 0;
            more
        })
    }

    pub(super) fn writers_before(&self, order: &Order, slot: Slot) -> &[Use] {
        let label = order.label(slot);
        let end = self.writers.partition_point(|writer| order.label(writer.slot) < label);
        &self.writers[..end]
    }

    /// The writers whose value may remain after all steps.
    pub(super) fn last(&self) -> impl Iterator<Item = Use> {
        let from = self.writers.iter().rposition(|writer| writer.how & SURE != 0).unwrap_or(0);
        self.writers[from..].iter().copied()
    }

    /// The readers that a value written at a slot may reach: those after it, up to and including
    /// the first writer that surely binds; and the label of that writer.
    pub(super) fn reached(&self, order: &Order, slot: Slot) -> (&[Use], u64) {
        let label = order.label(slot);
        let start = self.writers.partition_point(|writer| order.label(writer.slot) <= label);
        let next = self.writers[start..].iter().find(|writer| writer.how & SURE != 0);
        let until = next.map_or(u64::MAX, |writer| order.label(writer.slot));
        let start = self.readers.partition_point(|reader| order.label(reader.slot) <= label);
        let rest = &self.readers[start..];
        let end = rest.partition_point(|reader| order.label(reader.slot) <= until);
        (&rest[..end], until)
    }

    /// The readers between `from` and a slot.
    pub(super) fn readers_between(&self, order: &Order, from: u64, slot: Slot) -> &[Use] {
        let start = self.readers.partition_point(|reader| order.label(reader.slot) < from);
        let label = order.label(slot);
        let end = self.readers.partition_point(|reader| order.label(reader.slot) < label);
        &self.readers[start..end.max(start)]
    }

    /// How a slot reads it, if it does.
    pub(super) fn reader(&self, order: &Order, slot: Slot) -> Option<Use> {
        let label = order.label(slot);
        let at = self.readers.partition_point(|reader| order.label(reader.slot) < label);
        self.readers.get(at).copied().filter(|reader| reader.slot == slot)
    }

    pub(super) fn writers(&self) -> &[Use] {
        &self.writers
    }
}

/// Adds flags to a sorted list. Returns the former flags of the slot.
fn add(list: &mut Vec<Use>, order: &Order, slot: Slot, how: How) -> How {
    let label = order.label(slot);
    let at = match list.last() {
        // Steps are usually appended.
        Some(last) if last.slot == slot => list.len() - 1,
        Some(last) if order.label(last.slot) < label => list.len(),
        None => 0,
        Some(_) => list.partition_point(|other| order.label(other.slot) < label),
    };
    match list.get_mut(at).filter(|other| other.slot == slot) {
        Some(found) => {
            let old = found.how;
            found.how |= how;
            old
        }
        None => {
            list.insert(at, Use { slot, how });
            0
        }
    }
}

fn take(list: &mut Vec<Use>, order: &Order, slot: Slot, how: How) -> How {
    if how == 0 {
        return 0;
    }
    let label = order.label(slot);
    let at = list.partition_point(|other| order.label(other.slot) < label);
    match list.get_mut(at).filter(|other| other.slot == slot) {
        Some(found) => {
            let old = found.how;
            found.how &= !how;
            if found.how == 0 {
                list.remove(at);
            }
            old
        }
        None => 0,
    }
}
