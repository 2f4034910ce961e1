//! Where values are kept: the trait, and the store in memory or in a directory.
use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::exec::Blob;

use super::disk::Disk;
use super::shelf::{Place, Shelf};
use super::{BlobError, BlobId, BlobsSwept};

/// Keeps values under their ids, for [`Blobs::over`](super::Blobs::over). A value may get lost at any
/// time: it is made again then. What is returned is checked, so a store need not check it.
pub trait BlobStore: Send + fmt::Debug {
    /// Whether the value is there. If it is, it counts as put now.
    fn touch(&mut self, id: &BlobId) -> bool;

    /// Keeps a value that is not there. It is durable after the next [`flush`](Self::flush).
    ///
    /// # Errors
    /// If it cannot be kept.
    fn put(&mut self, id: BlobId, blob: Blob) -> Result<(), BlobError>;

    /// A value, if it is there.
    fn get(&mut self, id: &BlobId) -> Option<Blob>;

    /// Removes a value that is damaged.
    fn remove(&mut self, id: &BlobId);

    /// Makes everything that was put durable.
    ///
    /// # Errors
    /// If it may not be durable.
    fn flush(&mut self) -> Result<(), BlobError>;

    /// Removes the values that are not `live` and were last put longer than `grace` ago.
    ///
    /// # Errors
    /// If that fails. All live values are still there then.
    fn sweep(&mut self, live: &HashSet<BlobId>, grace: Duration) -> Result<BlobsSwept, BlobError>;

    /// The size of all values in bytes.
    fn bytes(&self) -> u64;
}

/// The store in memory or in a directory. Beyond its limit, the least recently used values go.
#[derive(Debug)]
pub(super) struct Shelved {
    shelf: Shelf,
    disk: Option<Disk>,
    limit: u64,
}

impl Shelved {
    pub(super) fn memory(limit: u64) -> Self {
        Self { shelf: Shelf::default(), disk: None, limit }
    }

    pub(super) fn dir(path: &Path, limit: u64) -> Self {
        let mut store = Self::memory(limit);
        let mut disk = Disk::new(path);
        disk.refresh(&mut store.shelf);
        store.disk = Some(disk);
        store.evict();
        store
    }

    /// Removes a value, and returns its size in bytes.
    fn forget(&mut self, id: &BlobId) -> u64 {
        let Some(entry) = self.shelf.remove(id) else {
            return 0;
        };
        if let (Place::Pack(pack, _), Some(disk)) = (&entry.place, &mut self.disk) {
            disk.lost(*pack, entry.len);
        }
        entry.len
    }

    fn evict(&mut self) {
        let mut evicted = 0_u64;
        while self.shelf.bytes() > self.limit
            && let Some(oldest) = self.shelf.oldest()
        {
            self.forget(&oldest);
            evicted += 1;
        }
        if evicted > 0 {
            let limit = self.limit;
            tracing::debug!(evicted, limit, "evicted values to keep the store within its limit");
        }
    }
}

impl BlobStore for Shelved {
    fn touch(&mut self, id: &BlobId) -> bool {
        self.shelf.touch(id, Some(SystemTime::now()))
    }

    fn put(&mut self, id: BlobId, blob: Blob) -> Result<(), BlobError> {
        let len = blob.len() as u64;
        self.shelf.add(id, Place::Here(blob), len, SystemTime::now());
        let written = self.disk.as_mut().map_or(Ok(()), |disk| disk.put(&mut self.shelf, id, len));
        self.evict();
        written
    }

    fn get(&mut self, id: &BlobId) -> Option<Blob> {
        // Another process may have put a value, or removed a pack by compaction.
        for known in [true, false] {
            if !known && let Some(disk) = &mut self.disk {
                disk.refresh(&mut self.shelf);
            }
            let Some(entry) = self.shelf.get(id) else { continue };
            let found = match (&entry.place, &self.disk) {
                (Place::Here(blob), _) => Some(blob.clone()),
                (Place::Pack(pack, at), Some(disk)) => {
                    disk.read(*pack, *at, entry.len).map(Blob::from)
                }
                (Place::Pack(..), None) => None,
            };
            if found.is_some() {
                self.shelf.touch(id, None);
                return found;
            }
            self.forget(id);
        }
        None
    }

    fn remove(&mut self, id: &BlobId) {
        self.forget(id);
    }

    fn flush(&mut self) -> Result<(), BlobError> {
        match &mut self.disk {
            Some(disk) => {
                disk.flush(&mut self.shelf)?;
                disk.tidy(&mut self.shelf, self.limit)
            }
            None => Ok(()),
        }
    }

    fn sweep(&mut self, live: &HashSet<BlobId>, grace: Duration) -> Result<BlobsSwept, BlobError> {
        let now = SystemTime::now();
        if let Some(disk) = &mut self.disk {
            disk.refresh(&mut self.shelf);
        }
        let dead: Vec<BlobId> = self
            .shelf
            .iter()
            .filter(|(id, _)| !live.contains(*id))
            .filter(|(_, entry)| now.duration_since(entry.put).is_ok_and(|age| age >= grace))
            .map(|(id, _)| *id)
            .collect();
        let mut swept = BlobsSwept::default();
        for id in dead {
            swept.removed += 1;
            swept.bytes += self.forget(&id);
        }
        swept.kept = self.shelf.len() as u64;
        if let Some(disk) = &mut self.disk {
            disk.tidy(&mut self.shelf, 0)?;
        }
        Ok(swept)
    }

    fn bytes(&self) -> u64 {
        self.shelf.bytes()
    }
}
