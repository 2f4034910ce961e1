//! How a store is opened.

use std::time::Duration;

use crate::local::Sync;

/// How a [`SqliteStore`](super::SqliteStore) is opened.
#[derive(Clone, Debug)]
pub struct SqliteStoreOptions {
    pub(crate) sync: Sync,
    pub(crate) patience: Duration,
    pub(crate) readers: usize,
}

impl Default for SqliteStoreOptions {
    fn default() -> Self {
        Self { sync: Sync::Flush, patience: Duration::from_secs(10), readers: 4 }
    }
}

impl SqliteStoreOptions {
    /// What [`SqliteStore::open`](super::SqliteStore::open) uses.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// When writes are synced; the default is [`Sync::Flush`]. With [`Sync::Never`], a loss of power
    /// may take the last writes, and leaves the database consistent.
    #[must_use]
    pub fn sync(mut self, sync: Sync) -> Self {
        self.sync = sync;
        self
    }

    /// How long a call waits for another process that writes; the default is ten seconds. Then it
    /// fails with [`StoreError::Unavailable`](harness::store::StoreError::Unavailable), without an effect.
    #[must_use]
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.patience = timeout;
        self
    }

    /// How many threads read, each with a connection of its own; the default is 4.
    #[must_use]
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = readers.max(1);
        self
    }
}
