//! The stores that are tortured.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use harness::SessionId;
use harness::store::{
    Appended, Batch, Claimed, DueRequest, DueSessions, Filter, InboxSeq, Lease, Listing, Message,
    Page, ReadRequest, Released, Remove, Sent, SessionStore, StoreError,
};
use harness_store::{FileStoreOptions, Sync};

/// Where sessions are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Files,
    #[cfg(feature = "sqlite")]
    Database,
}

/// Shows all processes that the sessions below a directory are in a database.
#[cfg(feature = "sqlite")]
const MARK: &str = "in-a-database";

impl Kind {
    /// Decides it for a new directory.
    pub fn choose(self, _dir: &Path) {
        #[cfg(feature = "sqlite")]
        if self == Self::Database {
            std::fs::write(_dir.join(MARK), []).unwrap();
        }
    }
}

/// A store of either kind.
#[derive(Clone)]
pub struct Store(Arc<dyn SessionStore>);

impl Store {
    pub async fn open(dir: &Path, sync: bool) -> Self {
        let sync = if sync { Sync::Flush } else { Sync::Never };
        #[cfg(feature = "sqlite")]
        if dir.join(MARK).exists() {
            let options = harness_store::SqliteStoreOptions::new().sync(sync);
            return Self(Arc::new(options.open(dir.join("sessions.db")).await.unwrap()));
        }
        Self(Arc::new(FileStoreOptions::new().sync(sync).open(dir.join("store")).await.unwrap()))
    }
}

#[async_trait]
impl SessionStore for Store {
    async fn claim(&self, session: &SessionId, ttl: Duration) -> Result<Claimed, StoreError> {
        self.0.claim(session, ttl).await
    }

    async fn claim_due(
        &self,
        request: &DueRequest,
        ttl: Duration,
    ) -> Result<DueSessions, StoreError> {
        self.0.claim_due(request, ttl).await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<InboxSeq, StoreError> {
        self.0.renew(lease, ttl).await
    }

    async fn release(&self, lease: &Lease, read: InboxSeq) -> Result<Released, StoreError> {
        self.0.release(lease, read).await
    }

    async fn append(&self, lease: &Lease, batch: Batch<'_>) -> Result<Appended, StoreError> {
        self.0.append(lease, batch).await
    }

    async fn send(&self, to: &SessionId, messages: &[Message]) -> Result<Sent, StoreError> {
        self.0.send(to, messages).await
    }

    async fn read(
        &self,
        session: &SessionId,
        request: ReadRequest,
    ) -> Result<Option<Page>, StoreError> {
        self.0.read(session, request).await
    }

    async fn list(
        &self,
        filter: &Filter,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Listing, StoreError> {
        self.0.list(filter, after, limit).await
    }

    async fn remove(&self, lease: &Lease, what: Remove) -> Result<(), StoreError> {
        self.0.remove(lease, what).await
    }
}
