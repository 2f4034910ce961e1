//! What is appended in one batch.

use crate::clock::UtcMillis;
use crate::id::{InterruptId, Seq};
use crate::store::{NewEntry, OpenInterrupt, SessionSummary};

/// Runs once an entry is in the store, as durable as it must be. Takes the entry's seq.
pub(crate) type Notice = Box<dyn FnOnce(Seq) + Send>;

/// Entries to append in one batch, and what goes with them.
#[derive(Default)]
pub(super) struct Pending {
    /// The entries, one behind the other.
    pub(super) bytes: Vec<u8>,
    /// Where each of them ends, and whether it is a snapshot.
    pub(super) ends: Vec<(usize, bool)>,
    /// When the last of them was made.
    pub(super) at: UtcMillis,
    pub(super) open: Vec<OpenInterrupt>,
    pub(super) close: Vec<InterruptId>,
    pub(super) summary: Option<SessionSummary>,
    /// What to run after the append, each with the number of its entry in the batch, from 1.
    pub(super) notices: Vec<(u64, Notice)>,
}

impl Pending {
    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty() && self.summary.is_none()
    }

    /// Whether it has one entry, so that its time begins.
    pub(super) fn has_one_entry(&self) -> bool {
        self.ends.len() == 1
    }

    /// The bytes of its entries.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The entry, if there is only one.
    pub(super) fn only_entry(&self) -> Option<NewEntry<'_>> {
        match self.ends[..] {
            [(_, snapshot)] => Some(NewEntry { bytes: &self.bytes, snapshot }),
            _ => None,
        }
    }

    /// The entries as a store takes them.
    pub(super) fn entries(&self) -> Vec<NewEntry<'_>> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(end, _)| *end));
        starts
            .zip(&self.ends)
            .map(|(start, (end, snapshot))| NewEntry {
                bytes: &self.bytes[start..*end],
                snapshot: *snapshot,
            })
            .collect()
    }

    /// Says that the bytes from here on are an entry, and how many they are.
    pub(super) fn pushed(&mut self, from: usize, snapshot: bool) -> u64 {
        let end = self.bytes.len();
        self.ends.push((end, snapshot));
        (end - from) as u64
    }

    /// Opens interrupts, also those that an entry of the same batch has closed.
    pub(super) fn reopen(&mut self, open: impl Iterator<Item = OpenInterrupt>) {
        let before = self.open.len();
        self.open.extend(open);
        let again = &self.open[before..];
        self.close.retain(|id| !again.iter().any(|open| open.id == *id));
    }

    /// With room for the first entries of a session, as a rule.
    pub(super) fn with_room() -> Self {
        Self { bytes: Vec::with_capacity(1024), ..Self::default() }
    }

    /// Whether it has room for little.
    pub(super) fn is_small(&self) -> bool {
        let Self { bytes, ends, open, close, notices, .. } = self;
        let most =
            ends.capacity().max(open.capacity()).max(close.capacity()).max(notices.capacity());
        bytes.capacity() <= 64 << 10 && most <= 256
    }

    /// Empties it, keeping its room.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.open.clear();
        self.close.clear();
        self.summary = None;
        self.notices.clear();
    }
}
