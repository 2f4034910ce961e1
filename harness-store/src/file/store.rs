//! The store itself: its options, and the methods of the store trait.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use harness::SessionId;
use harness::id::AgentId;
use harness::store::{
    Appended, Batch, Claimed, DueRequest, DueSessions, Filter, InboxSeq, Lease, Listing, Message,
    Page, ReadRequest, Released, Remove, Sent, SessionStore, StoreError,
};
use tokio::sync::Notify;

use super::disk::{Disk, RealDisk};
use super::error::{failed, is_out_of_files, refuse_foreign};
use super::inner::{Inner, Sync};
use super::liveness::Liveness;
use super::paths::{SESSIONS, UNFINISHED, is_named, set_named};
use super::place::{PLACE, Place};
use super::record::{MAX_RECORD, Prepared};
use super::threads::Threads;

/// Keeps sessions in files, for any number of processes of one machine.
///
/// Each session has a log of its own, of lines that people can read. The store needs nothing but a
/// local file system. A flushed batch costs one sync of its log. Sessions do not wait for each other.
///
/// All syncs run on tokio's blocking threads, and so does everything that opens a log or reads entries:
/// a disk that stalls delays only the calls that wait for it. A thread that has finished looks for more
/// work for 100 µs before it rests. A short write to the page cache, to a log that is open, needs no
/// other thread. Outside of a tokio runtime a call blocks its thread.
///
/// When a process ends or drops its store, its leases are free at once, if the file system has
/// advisory locks, and so they are after a restart of the machine. When a process is suspended, its
/// leases are free once they expire. That is also the case when the file is deleted that shows that
/// its store is open.
///
/// Containers can share a store on one volume: they have one kernel, whose locks, boot id and clock
/// they see. Virtual machines have a kernel each and cannot, also on one host.
///
/// A store that opens a long session reads its log from the last snapshot on. Damage before that
/// snapshot is reported, as [`StoreError::Corrupt`], to calls that read entries before it, that prune,
/// or that have no record of where to start; damage from the snapshot on, and entries missing from
/// there on, are reported to all calls. A log with fewer than 64 KiB before its last snapshot, or with
/// more than 16 KiB of messages there, is always read and checked as a whole.
///
/// [`backup`](FileStore::backup) copies a store in use. A plain copy (`cp -r`) of one in use has the
/// files of a session as they were at different moments: there a log may lack its last acknowledged
/// entries, which is logged, and the session continues where its log ends. A store detects that it
/// is a copy by the time when its files were made, where the file system keeps that, and if it was
/// copied as a whole, to a new directory. In every other case, and for everything that was written
/// since in the copy, missing acknowledged entries are damage.
///
/// A plain copy must be durable before it is used: the store does not sync again what its files record
/// as synced.
///
/// There is no index of all sessions on the disk. The first [`list`](SessionStore::list) of an open
/// store reads the directory, later ones read what has changed of it. Of each new or changed session
/// it reads the checkpoint, or the log if that continues after the checkpoint. So a page costs one
/// look at each of its sessions, and at those that its filter leaves out.
///
/// ```
/// # async fn example() -> Result<(), harness::store::StoreError> {
/// use std::time::Duration;
///
/// use harness::SessionId;
/// use harness::store::SessionStore as _;
/// use harness_store::FileStore;
///
/// # let dir = tempfile::tempdir().expect("a directory");
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
        // Most are left to the rest of the process.
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let quarter = limit.map_or(OPEN_FILES, |limit| limit / 4).clamp(1, OPEN_FILES);
        Self { sync: Sync::Flush, open_files: quarter as usize }
    }
}

impl FileStoreOptions {
    /// What [`FileStore::open`] uses.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// When writes are synced; the default is [`Sync::Flush`].
    #[must_use]
    pub fn sync(mut self, sync: Sync) -> Self {
        self.sync = sync;
        self
    }

    /// How many logs are kept open; the default is 512, or a quarter of what the process may open at
    /// most. A log that was closed is read again when it is needed. When no file can be opened any
    /// more, the store closes all logs that no call uses.
    #[must_use]
    pub fn open_files(mut self, files: usize) -> Self {
        self.open_files = files.max(1);
        self
    }

    /// Opens the store in this directory, which is created if it is missing.
    ///
    /// # Errors
    /// [`StoreError::Unsuitable`] if the directory is on a network file system, cannot be written,
    /// belongs to another user, or may be written by every user; [`StoreError::Unavailable`] if the
    /// disk fails.
    pub async fn open(self, dir: impl AsRef<Path>) -> Result<FileStore, StoreError> {
        // The process may change its working directory.
        let dir = std::path::absolute(dir.as_ref());
        let dir = dir.map_err(|error| failed("find", Path::new("."), error))?;
        Threads::default().run(move || self.open_on(Arc::new(RealDisk), &dir)).await
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
        if !made && disk.exists(&dir.join(UNFINISHED)) {
            return Err(StoreError::Unsuitable(format!(
                "`{}` holds a backup that was not finished (delete it, and make another)",
                dir.display()
            )));
        }
        for path in [dir, &sessions].into_iter().filter(|_| !made) {
            match disk.make_dir(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failed("make", path, error));
                }
                _ => {}
            }
        }
        super::error::refuse_network(dir)?;
        // The store itself may be reached by a link, its own directories may not.
        refuse_foreign(dir, true)?;
        refuse_foreign(&sessions, false)?;
        if self.sync == Sync::Flush && !named {
            for path in unnamed {
                let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
                disk.sync_dir(path).map_err(|error| failed("sync", path, error))?;
            }
            set_named(&*disk, dir);
        }
        let place = Place::of(&*disk, dir, self.sync == Sync::Flush);
        let place = place.map_err(|error| failed("write", &dir.join(PLACE), error))?;
        let open_stores = dir.join(OPEN_STORES);
        let liveness = Liveness::new(&disk, open_stores.clone())
            .map_err(|error| failed("lock a file in", &open_stores, error))?;
        refuse_foreign(&open_stores, false)?;
        Ok(FileStore {
            inner: Arc::new(Inner {
                disk,
                sessions,
                sync: self.sync,
                place: Arc::new(place),
                liveness,
                threads: Threads::default(),
                open: Mutex::default(),
                open_files: self.open_files,
                catalog: Mutex::default(),
                due: Mutex::default(),
                became_due: Notify::new(),
            }),
        })
    }
}

impl FileStore {
    /// The most bytes of entries in one batch, as they are written: 64 MiB.
    pub const MAX_BATCH: u64 = MAX_RECORD;

    /// Opens the store in this directory, which is created if it is missing. Flushed batches survive
    /// a loss of power.
    ///
    /// # Errors
    /// As [`FileStoreOptions::open`].
    pub async fn open(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        FileStoreOptions::new().open(dir).await
    }

    /// Does work on a session that reads no entry and syncs nothing. Where its log is open, a few
    /// calls to the page cache cost less than a change of threads.
    async fn run_briefly<T: Send + 'static>(
        &self,
        session: &SessionId,
        work: impl Fn(&Inner) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        match self.inner.is_ready(session) {
            true => with_files(&self.inner, work),
            false => self.run(work).await,
        }
    }

    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Fn(&Inner) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let inner = Arc::clone(&self.inner);
        self.inner.threads.run(move || with_files(&inner, work)).await
    }
}

/// The most logs that are kept open by default.
const OPEN_FILES: u64 = 512;

/// Does the work again without idle logs if no file could be opened.
pub(crate) fn with_files<T>(
    inner: &Inner,
    work: impl Fn(&Inner) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    match work(inner) {
        Err(error) if is_out_of_files(&error) && inner.close_idle() => work(inner),
        done => done,
    }
}

/// The directory that shows which stores are open.
const OPEN_STORES: &str = "open";

#[async_trait]
impl SessionStore for FileStore {
    async fn claim(&self, session: &SessionId, ttl: Duration) -> Result<Claimed, StoreError> {
        let id = session.clone();
        self.run_briefly(session, move |inner| inner.claim(&id, ttl)).await
    }

    async fn claim_due(
        &self,
        request: &DueRequest,
        ttl: Duration,
    ) -> Result<DueSessions, StoreError> {
        let request = request.clone();
        self.run(move |inner| inner.claim_due(&request, ttl)).await
    }

    async fn wait_due(&self, _: &[AgentId], timeout: Duration) {
        // What other processes do is found by asking again.
        let _ = tokio::time::timeout(timeout, self.inner.became_due.notified()).await;
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<InboxSeq, StoreError> {
        let lease = lease.clone();
        self.run(move |inner| inner.renew(&lease, ttl)).await
    }

    async fn release(&self, lease: &Lease, read: InboxSeq) -> Result<Released, StoreError> {
        let held = lease.clone();
        self.run_briefly(&lease.session, move |inner| inner.release(&held, read)).await
    }

    async fn append(&self, lease: &Lease, batch: Batch<'_>) -> Result<Appended, StoreError> {
        let prepared = Prepared::new(&batch)?;
        let held = lease.clone();
        let append = move |inner: &Inner| inner.append(&held, &prepared);
        match batch.flush && self.inner.sync == Sync::Flush {
            true => self.run(append).await,
            false => self.run_briefly(&lease.session, append).await,
        }
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
        let id = session.clone();
        match request.from {
            Some(_) => self.run(move |inner| inner.read(&id, request)).await,
            None => self.run_briefly(session, move |inner| inner.read(&id, request)).await,
        }
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
