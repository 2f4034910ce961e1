//! The store itself.

use std::time::Duration;

use async_trait::async_trait;
use harness::SessionId;
use harness::id::AgentId;
use harness::store::{
    Appended, Batch, Claimed, DueRequest, DueSessions, Filter, InboxSeq, Lease, Listing, Message,
    Page, ReadRequest, Released, Remove, Sent, SessionStore, StoreError,
};

use crate::sql::MAX_BATCH;

use super::append::Prepared;
use super::client::Client;
use super::group::Groups;
use super::listen::Listener;
use super::{claim, due, list, read, remove, send};

/// Keeps sessions in a PostgreSQL database (version 13 or newer), for any number of processes on any
/// number of machines. Its clones share their connections.
///
/// An append is one round trip: one statement that checks the lease and the head and writes the
/// batch. While a few are under way, the next ones wait and then share a transaction, and so a sync of
/// the server: a thousand sessions at work need far fewer than a thousand. Each is answered after its
/// commit, and one that is refused, or that the server cannot do, fails alone. With
/// [`flush`](Batch::flush) it commits with the `synchronous_commit` that the server has when the
/// connection opens, which is `on` where the server has it off; without, it commits with `off`: it then
/// outlives this process, but a crash of the server itself may take what was appended in the last second,
/// up to the last flushed batch of any session. So the server loses the end of what was written, and
/// never a part in the middle.
///
/// Leases expire by the clock of the server. The store does not know whether a holder is dead: the
/// lease of a process that was killed is free once it expires.
///
/// Due sessions are found by an index. A message, and a release of a session that has something to do,
/// notify the processes that wait for them (`LISTEN`), on one more connection of each; a connection
/// pooler that shares connections between transactions passes no notices on, and then only the next
/// call that asks finds them.
///
/// A claim has the server verify the log from its last snapshot on, and so does a message.
///
/// ```no_run
/// # async fn example() -> Result<(), harness::store::StoreError> {
/// use std::time::Duration;
///
/// use harness::SessionId;
/// use harness::store::SessionStore as _;
/// use harness_store::PostgresStore;
///
/// let store = PostgresStore::connect("postgres://agents:secret@localhost/agents").await?;
/// let id = SessionId::fresh();
/// let claimed = store.claim(&id, Duration::from_secs(30)).await?;
/// assert_eq!(claimed.head.0, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PostgresStore {
    pub(crate) client: Client,
    pub(crate) groups: Groups,
    pub(crate) listener: Listener,
}

impl PostgresStore {
    /// The most bytes of entries in one batch, and of messages in one call: 64 MiB.
    pub const MAX_BATCH: u64 = MAX_BATCH;
}

#[async_trait]
impl SessionStore for PostgresStore {
    async fn claim(&self, session: &SessionId, ttl: Duration) -> Result<Claimed, StoreError> {
        claim::claim(&self.client, session, ttl).await
    }

    async fn claim_due(
        &self,
        request: &DueRequest,
        ttl: Duration,
    ) -> Result<DueSessions, StoreError> {
        due::claim_due(&self.client, request, ttl).await
    }

    async fn wait_due(&self, agents: &[AgentId], timeout: Duration) {
        let _ = tokio::time::timeout(timeout, self.listener.notified(agents)).await;
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<InboxSeq, StoreError> {
        claim::renew(&self.client, lease, ttl).await
    }

    async fn release(&self, lease: &Lease, read: InboxSeq) -> Result<Released, StoreError> {
        claim::release(&self.client, lease, read).await
    }

    async fn append(&self, lease: &Lease, batch: Batch<'_>) -> Result<Appended, StoreError> {
        self.groups.append(Prepared::new(lease, &batch)?).await
    }

    async fn send(&self, to: &SessionId, messages: &[Message]) -> Result<Sent, StoreError> {
        send::send(&self.client, to, messages).await
    }

    async fn read(
        &self,
        session: &SessionId,
        request: ReadRequest,
    ) -> Result<Option<Page>, StoreError> {
        read::read(&self.client, session, request).await
    }

    async fn list(
        &self,
        filter: &Filter,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Listing, StoreError> {
        list::list(&self.client, filter, after, limit).await
    }

    async fn remove(&self, lease: &Lease, what: Remove) -> Result<(), StoreError> {
        remove::remove(&self.client, lease, what).await
    }
}
