//! The store itself: its options, what is open, and the store trait's methods.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use harness::SessionId;
use harness::store::{
    Appended, Batch, Claimed, Filter, InboxSeq, Lease, Listing, Message, Page, ReadRequest,
    Released, Remove, Sent, SessionStore, StoreError,
};

use super::disk::{Disk, RealDisk};
use super::error::{failed, unsure};
use super::inner::{Inner, Sync};
use super::liveness::Liveness;
use super::paths::{is_named, set_named};
use super::record::{MAX_RECORD, Prepared};

/// Keeps sessions in files, for any number of processes of one machine.
///
/// Each session has a log of its own, of lines that people can read. Nothing but the file system is
/// needed; it has to be a local one. A flushed batch costs one sync of its own log, so sessions do
/// not wait for each other. The lease of a process that has ended, or of a store that was dropped,
/// is free at once (on Linux and Android; elsewhere it has to expire); that of a process that was
/// stopped is free when it expires.
///
/// Who asks for something waits for the disk on another thread, unless it is short: where the last
/// syncs took less than half a millisecond, and this process holds no second session, handing the
/// wait over would take a third as long as the wait, and nobody else could use the time.
///
/// A store that is new to a long session reads it from its last snapshot on. So what is damaged
/// before that is told, as [`StoreError::Corrupt`], to those who ask for what is there, who prune,
/// or who have no word of where to start; what is damaged or missing from the snapshot on is told
/// to everybody. Of a log with fewer than 64 KiB before its last snapshot, or with more than 16 KiB
/// of messages there, all is always read and checked.
///
/// Who copies a store, or moves it, sees to it that the copy is durable: a store does not sync again
/// what it finds word of that it was synced. What is acknowledged is in the log. That a log has become
/// shorter than that is told by an attribute that it is given when its session comes to rest, and by
/// a note beside it, which follows within about a second if the process lives so long (at once where
/// files have no attributes). So a copy without attributes of what was written just before its process
/// ended does not tell.
///
/// There is no index of all sessions on the disk. An open store reads the directory once, at its
/// first [`list`](SessionStore::list), and later what has changed of it. Of each session it comes by
/// it reads the note that a session at rest leaves beside its log, or the whole log of one that has
/// gone on since, and remembers that until the log is written to. So a page costs a look at each of
/// its sessions, and at those that its filter leaves out. A claim of any due session looks at all
/// sessions, and if none is due again every 100 ms until it has waited long enough. With very many
/// sessions a store with an index serves workers better.
///
/// ```
/// # async fn example() -> Result<(), harness::store::StoreError> {
/// use std::time::Duration;
///
/// use harness::SessionId;
/// use harness::store::SessionStore as _;
/// use harness_store::FileStore;
///
/// # let dir = std::env::temp_dir().join("harness-store-doc");
/// let store = FileStore::open(&dir).await?;
/// let id = SessionId::fresh();
/// let claimed = store.claim(&id, Duration::from_secs(30)).await?;
/// assert_eq!(claimed.head.0, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct FileStore {
    pub(crate) inner: Arc<Inner>,
}

/// How a [`FileStore`] is opened.
#[derive(Clone, Debug)]
pub struct FileStoreOptions {
    sync: Sync,
    open_files: usize,
}

impl Default for FileStoreOptions {
    fn default() -> Self {
        Self { sync: Sync::Flush, open_files: 512 }
    }
}

impl FileStoreOptions {
    /// What [`FileStore::open`] uses.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// When what was written is made to survive a loss of power; [`Sync::Flush`] unless this says
    /// otherwise.
    #[must_use]
    pub fn sync(mut self, sync: Sync) -> Self {
        self.sync = sync;
        self
    }

    /// How many logs are kept open; 512 unless this says otherwise. One that was closed is read
    /// again from its beginning when it is needed.
    #[must_use]
    pub fn open_files(mut self, files: usize) -> Self {
        self.open_files = files.max(1);
        self
    }

    /// Opens the store in this directory, which is made if it is missing.
    ///
    /// # Errors
    /// [`StoreError::Unsuitable`] if the directory is on a network file system, or cannot be
    /// written; [`StoreError::Unavailable`] if the disk fails.
    pub async fn open(self, dir: impl AsRef<Path>) -> Result<FileStore, StoreError> {
        let dir = dir.as_ref().to_owned();
        blocking(move || self.open_on(Arc::new(RealDisk), &dir)).await
    }

    pub(crate) fn open_on(self, disk: Arc<dyn Disk>, dir: &Path) -> Result<FileStore, StoreError> {
        let sessions = dir.join(SESSIONS);
        let named = is_named(&*disk, dir);
        let parent = dir.parent().unwrap_or(dir);
        let mut unnamed = Vec::new();
        if !named {
            let made = parent.ancestors().take_while(|path| !path.exists());
            unnamed.extend(made.filter_map(Path::parent));
            unnamed.extend([parent, dir]);
            std::fs::create_dir_all(parent).map_err(|error| failed("make", dir, error))?;
        }
        let made = named && sessions.is_dir();
        for path in [dir, &sessions].into_iter().filter(|_| !made) {
            match disk.make_dir(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failed("make", path, error));
                }
                _ => {}
            }
        }
        super::error::refuse_network(dir)?;
        if self.sync == Sync::Flush && !named {
            for path in unnamed {
                let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
                disk.sync_dir(path).map_err(|error| failed("sync", path, error))?;
            }
            set_named(&*disk, dir);
        }
        let open_stores = dir.join(OPEN_STORES);
        let liveness = Liveness::new(&disk, open_stores.clone())
            .map_err(|error| failed("lock a file in", &open_stores, error))?;
        Ok(FileStore {
            inner: Arc::new(Inner {
                disk,
                sessions,
                sync: self.sync,
                liveness,
                open: Mutex::default(),
                open_files: self.open_files,
                catalog: Mutex::default(),
            }),
        })
    }
}

impl FileStore {
    /// The most bytes of entries in one batch, as they are written: 64 MiB.
    pub const MAX_BATCH: u64 = MAX_RECORD;

    /// Opens the store in this directory, which is made if it is missing. What is flushed survives
    /// a loss of power.
    ///
    /// # Errors
    /// As [`FileStoreOptions::open`].
    pub async fn open(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        FileStoreOptions::new().open(dir).await
    }

    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let inner = Arc::clone(&self.inner);
        blocking(move || work(&inner)).await
    }
}

/// The directory of the sessions.
const SESSIONS: &str = "sessions";

/// The directory that shows which stores are open.
const OPEN_STORES: &str = "open";

/// Runs what waits for the disk where it holds up no other task. It is finished even if nobody
/// waits for it any more.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::runtime::Handle::try_current() {
        Err(_) => work(),
        Ok(runtime) => runtime.spawn_blocking(work).await.unwrap_or_else(|error| {
            Err(unsure(format!("work on the disk was given up: {error}"), None))
        }),
    }
}

#[async_trait]
impl SessionStore for FileStore {
    async fn claim(&self, session: &SessionId, ttl: Duration) -> Result<Claimed, StoreError> {
        let id = session.clone();
        self.run(move |inner| inner.claim(&id, ttl)).await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<InboxSeq, StoreError> {
        let lease = lease.clone();
        self.run(move |inner| inner.renew(&lease, ttl)).await
    }

    async fn release(&self, lease: &Lease, read: InboxSeq) -> Result<Released, StoreError> {
        let lease = lease.clone();
        self.run(move |inner| inner.release(&lease, read)).await
    }

    async fn append(&self, lease: &Lease, batch: Batch<'_>) -> Result<Appended, StoreError> {
        let prepared = Prepared::new(&batch)?;
        let syncs = batch.flush && self.inner.sync == Sync::Flush;
        if !syncs && self.inner.is_ready(&lease.session) {
            // One write to the page cache costs less than a change of threads.
            return self.inner.append(lease, &prepared);
        }
        let lease = lease.clone();
        self.run(move |inner| inner.append(&lease, &prepared)).await
    }

    async fn send(&self, to: &SessionId, messages: &[Message]) -> Result<Sent, StoreError> {
        let (to, messages) = (to.clone(), messages.to_vec());
        self.run(move |inner| inner.send(&to, &messages)).await
    }

    async fn read(
        &self,
        session: &SessionId,
        request: ReadRequest,
    ) -> Result<Option<Page>, StoreError> {
        let session = session.clone();
        self.run(move |inner| inner.read(&session, request)).await
    }

    async fn list(
        &self,
        filter: &Filter,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Listing, StoreError> {
        let (filter, after) = (filter.clone(), after.map(<[u8]>::to_vec));
        self.run(move |inner| inner.list(&filter, after.as_deref(), limit)).await
    }

    async fn remove(&self, lease: &Lease, what: Remove) -> Result<(), StoreError> {
        let lease = lease.clone();
        self.run(move |inner| inner.remove(&lease, what)).await
    }
}
