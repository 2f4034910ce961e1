//! The store itself: its options, and the methods of the store trait.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use harness::SessionId;
use harness::id::AgentId;
use harness::store::{
    Appended, Batch, Claimed, DueRequest, DueSessions, Filter, InboxSeq, Lease, Listing, Message,
    Page, ReadRequest, Released, Remove, Sent, SessionStore, StoreError,
};
use tokio::sync::oneshot;

use crate::local::error::failed;
use crate::sql::{MAX_BATCH, messages_size};

use super::batch::Prepared;
use super::error::ended;
use super::options::SqliteStoreOptions;
use super::readers::spawn;
use super::shared::Shared;
use super::{append, claim, list, open, read, remove, send};

/// Keeps sessions in one SQLite database, for any number of processes of one machine.
///
/// SQLite is compiled into the program. The database is one file; while it is open, SQLite keeps a
/// write-ahead log and its index beside it (`-wal`, `-shm`), and the store a directory (`-open`) that
/// shows which stores are open. Move or delete them only together.
///
/// All writes of a store run on one thread. What waits when a transaction begins shares it: a thousand
/// sessions at work need far fewer than a thousand syncs. Each call is answered after its commit, and
/// one that is refused, or that the database cannot do, fails alone. Reads run on threads of their own
/// and see one state of the database, whatever is written meanwhile. No async thread waits for the
/// disk.
///
/// - *Flushed* batches, messages and removals survive a loss of power (`synchronous = FULL`), and so
///   does everything that any process has written before.
/// - Batches without a flush and leases survive the end of the process; a loss of power may take the
///   last of them, and never leaves a part of a transaction.
///
/// When a process ends or drops its store, its leases are free at once, if the file system has
/// advisory locks, and so they are after a restart of the machine. When a process is suspended, its
/// leases are free once they expire, by a clock that no person sets. A process that is suspended *in a
/// transaction* also keeps the others from writing until it continues or ends; they wait for
/// [`busy_timeout`](SqliteStoreOptions::busy_timeout), then fail without an effect. Where processes are
/// suspended routinely, use a `FileStore`, in which they never wait for each other.
///
/// Every row has a checksum, so that a changed byte of an entry, a message, an interrupt or a summary is
/// [`StoreError::Corrupt`]. A claim checks the log of a session from its last snapshot on, a read what
/// it reads. A changed byte in the key of a row can hide the row: of an entry, a message or an
/// interrupt that is `Corrupt` too, of a session it is not noticed.
///
/// Pages of a list are found by an index: a page takes as long among ten sessions as among a hundred
/// thousand. The exception is a list of open interrupts by phase, which looks at each session with open
/// interrupts up to the end of its page.
///
/// The space of what was pruned or removed is used again by what comes later; the file does not
/// shrink (`auto_vacuum = NONE`, because moving pages in every commit costs more than the space).
/// [`backup`](SqliteStore::backup) makes a copy without free space. Pruned bytes stay in the file until
/// they are overwritten.
///
/// ```
/// # async fn example() -> Result<(), harness::store::StoreError> {
/// use std::time::Duration;
///
/// use harness::SessionId;
/// use harness::store::SessionStore as _;
/// use harness_store::SqliteStore;
///
/// # let dir = tempfile::tempdir().expect("a directory");
/// let store = SqliteStore::open(dir.path().join("sessions.db")).await?;
/// let id = SessionId::fresh();
/// let claimed = store.claim(&id, Duration::from_secs(30)).await?;
/// assert_eq!(claimed.head.0, 0);
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct SqliteStore {
    pub(crate) shared: Arc<Shared>,
}

impl SqliteStoreOptions {
    /// Opens the store in this database, which is created if it is missing, with its directory. One of
    /// an older version is brought to this one, in one transaction.
    ///
    /// # Errors
    /// [`StoreError::Unsuitable`] if the file is on a network file system, cannot be written, belongs
    /// to another user, may be written by every user, or is not a database of this store;
    /// [`StoreError::NewerFormat`] if a newer version has written it; [`StoreError::Unavailable`] if
    /// the disk fails. What is not a database of this store is left as it is.
    pub async fn open(self, path: impl AsRef<Path>) -> Result<SqliteStore, StoreError> {
        // The process may change its working directory.
        let path = std::path::absolute(path.as_ref());
        let path = path.map_err(|error| failed("find", Path::new("."), error))?;
        let (to, opened) = oneshot::channel();
        spawn("sqlite-open", move || drop(to.send(open::open(&path, &self))))?;
        let shared = opened.await.unwrap_or_else(|_| Err(ended()))?;
        Ok(SqliteStore { shared: Arc::new(shared) })
    }
}

impl SqliteStore {
    /// The most bytes of entries in one batch, and of messages in one call: 64 MiB.
    pub const MAX_BATCH: u64 = MAX_BATCH;

    /// Opens the store in this database, which is created if it is missing. Flushed batches survive
    /// a loss of power.
    ///
    /// # Errors
    /// As [`SqliteStoreOptions::open`].
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        SqliteStoreOptions::new().open(path).await
    }
}

/// What a small call counts for in a transaction.
pub(crate) const SMALL: u64 = 256;

#[async_trait]
impl SessionStore for SqliteStore {
    async fn claim(&self, session: &SessionId, ttl: Duration) -> Result<Claimed, StoreError> {
        self.shared.check(session).await?;
        let (id, known) = (session.clone(), Arc::clone(&self.shared.known));
        let claim = move |conn: &_| claim::claim(conn, &known, &id, ttl);
        self.shared.write(session, false, SMALL, claim).await
    }

    async fn claim_due(
        &self,
        request: &DueRequest,
        ttl: Duration,
    ) -> Result<DueSessions, StoreError> {
        self.shared.claim_due(request, ttl).await
    }

    async fn wait_due(&self, _: &[AgentId], timeout: Duration) {
        // What other processes do is found by asking again.
        let _ = tokio::time::timeout(timeout, self.shared.due.notified()).await;
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<InboxSeq, StoreError> {
        let (held, known) = (lease.clone(), Arc::clone(&self.shared.known));
        let renew = move |conn: &_| claim::renew(conn, &known, &held, ttl);
        self.shared.write(&lease.session, false, SMALL, renew).await
    }

    async fn release(&self, lease: &Lease, read: InboxSeq) -> Result<Released, StoreError> {
        let (held, known) = (lease.clone(), Arc::clone(&self.shared.known));
        let release = move |conn: &_| claim::release(conn, &known, &held, read);
        self.shared.write_and_notify(&lease.session, false, SMALL, release).await
    }

    async fn append(&self, lease: &Lease, batch: Batch<'_>) -> Result<Appended, StoreError> {
        let prepared = Prepared::new(&batch)?;
        let (held, known) = (lease.clone(), Arc::clone(&self.shared.known));
        let bytes = SMALL + prepared.entries.len() as u64;
        let append = move |conn: &_| append::append(conn, &known, &held, &prepared);
        self.shared.write(&lease.session, batch.flush, bytes, append).await
    }

    async fn send(&self, to: &SessionId, messages: &[Message]) -> Result<Sent, StoreError> {
        let bytes = messages_size(messages)?;
        self.shared.check(to).await?;
        let (id, known, messages) = (to.clone(), Arc::clone(&self.shared.known), messages.to_vec());
        let send = move |conn: &_| send::send(conn, &known, &id, &messages);
        self.shared.write_and_notify(to, true, SMALL + bytes, send).await
    }

    async fn read(
        &self,
        session: &SessionId,
        request: ReadRequest,
    ) -> Result<Option<Page>, StoreError> {
        let (id, known) = (session.clone(), Arc::clone(&self.shared.known));
        let read = move |conn: &_| read::read(conn, &known, &id, request);
        self.shared.read(Some(session), read).await
    }

    async fn list(
        &self,
        filter: &Filter,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Listing, StoreError> {
        let (filter, after) = (filter.clone(), after.map(<[u8]>::to_vec));
        let list = move |conn: &_| list::list(conn, &filter, after.as_deref(), limit);
        self.shared.read(None, list).await
    }

    async fn remove(&self, lease: &Lease, what: Remove) -> Result<(), StoreError> {
        let (held, known) = (lease.clone(), Arc::clone(&self.shared.known));
        let remove = move |conn: &_| remove::remove(conn, &known, &held, what);
        self.shared.write(&lease.session, true, SMALL, remove).await
    }
}
