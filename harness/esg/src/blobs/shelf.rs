//! The index of a store: where each value is, its size, and when it was last used.
use std::collections::{BTreeMap, HashMap};
use std::time::SystemTime;

use crate::exec::Blob;

use super::id::BlobId;

/// The number of a pack.
pub(super) type PackNumber = usize;

/// Where a value is.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// In memory.
    Here(Blob),
    /// In a pack, from this offset on.
    Pack(PackNumber, u64),
}

/// The index entry of a value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) place: Place,
    pub(super) len: u64,
    /// When it was last put.
    pub(super) put: SystemTime,
    used: u64,
}

/// The index.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    entries: HashMap<BlobId, Entry>,
    /// The values by last use.
    by_use: BTreeMap<u64, BlobId>,
    clock: u64,
    bytes: u64,
}

impl Shelf {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, id: &BlobId) -> Option<&Entry> {
        self.entries.get(id)
    }

    /// Marks a value as used now, and as put if a time is given.
    pub(super) fn touch(&mut self, id: &BlobId, put: Option<SystemTime>) -> bool {
        let Some(entry) = self.entries.get_mut(id) else {
            return false;
        };
        self.by_use.remove(&entry.used);
        self.clock += 1;
        entry.used = self.clock;
        if let Some(put) = put {
            entry.put = put;
        }
        self.by_use.insert(self.clock, *id);
        true
    }

    /// Adds a value, or updates its place.
    pub(super) fn add(&mut self, id: BlobId, place: Place, len: u64, put: SystemTime) {
        self.remove(&id);
        self.clock += 1;
        self.bytes += len;
        self.by_use.insert(self.clock, id);
        self.entries.insert(id, Entry { place, len, put, used: self.clock });
    }

    pub(super) fn remove(&mut self, id: &BlobId) -> Option<Entry> {
        let entry = self.entries.remove(id)?;
        self.by_use.remove(&entry.used);
        self.bytes -= entry.len;
        Some(entry)
    }

    /// Updates the place of a value.
    pub(super) fn moved(&mut self, id: &BlobId, place: Place) {
        if let Some(entry) = self.entries.get_mut(id) {
            entry.place = place;
        }
    }

    /// The least recently used value.
    pub(super) fn oldest(&self) -> Option<BlobId> {
        self.by_use.first_key_value().map(|(_, id)| *id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&BlobId, &Entry)> {
        self.entries.iter()
    }
}
