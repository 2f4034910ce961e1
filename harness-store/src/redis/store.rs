//! The store itself.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use harness::SessionId;
use harness::id::AgentId;
use harness::store::{
    Appended, Batch, Claimed, DueRequest, DueSessions, Filter, InboxSeq, Lease, Listing, Message,
    Page, ReadRequest, Released, Remove, Sent, SessionStore, StoreError,
};

use crate::sql::MAX_BATCH;

use super::inner::Inner;
use super::{append, claim, due, list, read, remove, send};

/// Keeps sessions on a Redis server (version 7 or newer), for any number of processes on any number of
/// machines. Its clones share their connections.
///
/// Each call is one script, which the server runs as a whole: one round trip. The store promises that a
/// flushed batch survives a loss of power, so it refuses a server without `appendonly yes`,
/// `appendfsync always` and `maxmemory-policy noeviction`, and one with replicas, unless writes
/// [wait for these](crate::RedisStoreOptions::replicas). With
/// [`accept_loss`](crate::RedisStoreOptions::accept_loss) it uses any server that takes writes. A run whose
/// server has lost entries ends with [`StoreError::LostWrites`]. The settings are read with each new
/// connection.
///
/// All sessions are in the memory of one server: a node of a cluster is refused, because a list of
/// sessions would be on many. Leases expire by the clock of the server. The store does not know whether
/// a holder is dead: the lease of a process that was killed is free once it expires.
///
/// A claim has the server verify the log from its last snapshot on, and so does a message. The server
/// does nothing else meanwhile, for some milliseconds per MB.
///
/// ```no_run
/// # async fn example() -> Result<(), harness::store::StoreError> {
/// use std::time::Duration;
///
/// use harness::SessionId;
/// use harness::store::SessionStore as _;
/// use harness_store::RedisStore;
///
/// let store = RedisStore::connect("redis://agents:secret@localhost").await?;
/// let id = SessionId::fresh();
/// let claimed = store.claim(&id, Duration::from_secs(30)).await?;
/// assert_eq!(claimed.head.0, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RedisStore {
    pub(crate) inner: Arc<Inner>,
}

impl RedisStore {
    /// The most bytes of entries in one batch, and of messages in one call: 64 MiB.
    pub const MAX_BATCH: u64 = MAX_BATCH;
}

#[async_trait]
impl SessionStore for RedisStore {
    async fn claim(&self, session: &SessionId, ttl: Duration) -> Result<Claimed, StoreError> {
        claim::claim(&self.inner, session, ttl).await
    }

    async fn claim_due(
        &self,
        request: &DueRequest,
        ttl: Duration,
    ) -> Result<DueSessions, StoreError> {
        due::claim_due(&self.inner, request, ttl).await
    }

    async fn wait_due(&self, agents: &[AgentId], timeout: Duration) {
        self.inner.listener.wait(&self.inner.client, agents, timeout).await;
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<InboxSeq, StoreError> {
        claim::renew(&self.inner, lease, ttl).await
    }

    async fn release(&self, lease: &Lease, read: InboxSeq) -> Result<Released, StoreError> {
        claim::release(&self.inner, lease, read).await
    }

    async fn append(&self, lease: &Lease, batch: Batch<'_>) -> Result<Appended, StoreError> {
        append::append(&self.inner, lease, &batch).await
    }

    async fn send(&self, to: &SessionId, messages: &[Message]) -> Result<Sent, StoreError> {
        send::send(&self.inner, to, messages).await
    }

    async fn read(
        &self,
        session: &SessionId,
        request: ReadRequest,
    ) -> Result<Option<Page>, StoreError> {
        read::read(&self.inner, session, request).await
    }

    async fn list(
        &self,
        filter: &Filter,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Listing, StoreError> {
        list::list(&self.inner, filter, after, limit).await
    }

    async fn remove(&self, lease: &Lease, what: Remove) -> Result<(), StoreError> {
        remove::remove(&self.inner, lease, what).await
    }
}

/// A store prints where its sessions are, and no more of the URL.
impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("client", &self.inner.client).finish()
    }
}
