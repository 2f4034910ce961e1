//! What lies outside of all sessions: the file in which effects leave their traces, and the file
//! in which a process says what it is doing, so that the process that kills it knows.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use harness::store::{
    Appended, Batch, Claimed, DueRequest, DueSessions, Filter, InboxSeq, Lease, Listing, Message,
    Page, ReadRequest, Released, Remove, Sent, SessionStore, StoreError,
};
use harness::{SessionId, async_trait};

/// How many sessions a process works on at once.
pub const WORKERS: usize = 2;
/// The one that answers is at work beside them.
pub const SLOTS: usize = WORKERS + 1;

/// What a process is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    Other = b'.',
    Append = b'a',
    /// An append that waits for the disk.
    Sync = b's',
    Snapshot = b'n',
    Effect = b'e',
    Message = b'l',
}

pub const AIMS: [Phase; 5] =
    [Phase::Append, Phase::Sync, Phase::Snapshot, Phase::Effect, Phase::Message];

impl Phase {
    pub fn of(byte: u8) -> Self {
        AIMS.into_iter().find(|phase| *phase as u8 == byte).unwrap_or(Self::Other)
    }
}

/// One line that an effect has left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    pub session: String,
    pub op: String,
    pub key: String,
    pub kind: String,
    pub begins: bool,
    pub process: u32,
}

#[derive(Clone, Debug)]
pub struct Outside {
    path: PathBuf,
    effects: Arc<File>,
    phases: Option<Arc<File>>,
    slot: Option<usize>,
}

impl Outside {
    pub fn new(path: &Path) -> Self {
        let effects = OpenOptions::new().create(true).append(true).open(path).unwrap();
        Self { path: path.to_owned(), effects: Arc::new(effects), phases: None, slot: None }
    }

    /// Reports what it is doing in this file, a byte for each session at work.
    pub fn reporting_to(mut self, phases: &Path) -> Self {
        self.phases = Some(Arc::new(OpenOptions::new().write(true).open(phases).unwrap()));
        self
    }

    /// Whatever session it works on, it reports it here.
    pub fn at(mut self, slot: usize) -> Self {
        self.slot = Some(slot);
        self
    }

    pub fn enter(&self, session: &str, phase: Phase) {
        let Some(phases) = &self.phases else { return };
        let number = session.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<usize>();
        let slot = self.slot.unwrap_or_else(|| number.unwrap_or(0) % WORKERS);
        phases.write_all_at(&[phase as u8], slot as u64).unwrap();
    }

    fn leave_trace(&self, session: &str, op: &str, key: &str, kind: &str, phase: &str) {
        let line = format!("{session} {op} {key} {kind} {phase} {}\n", std::process::id());
        (&*self.effects).write_all(line.as_bytes()).unwrap();
    }

    /// Does something that takes a while and cannot be undone.
    pub async fn act(&self, session: &str, op: &str, key: &str, kind: &str) {
        self.enter(session, Phase::Effect);
        self.leave_trace(session, op, key, kind, "begin");
        tokio::time::sleep(Duration::from_millis(1)).await;
        self.leave_trace(session, op, key, kind, "end");
        self.enter(session, Phase::Other);
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What effects have left behind `from`, and where that ends.
    pub fn traces(path: &Path, from: usize) -> (Vec<Trace>, usize) {
        let text = std::fs::read_to_string(path).unwrap();
        // A line is written at once; a kill leaves none that is half there.
        let traces = text[from..].lines().map(|line| {
            let parts: Vec<&str> = line.split(' ').collect();
            assert_eq!(parts.len(), 6, "{line}");
            Trace {
                session: parts[0].into(),
                op: parts[1].into(),
                key: parts[2].into(),
                kind: parts[3].into(),
                begins: parts[4] == "begin",
                process: parts[5].parse().unwrap(),
            }
        });
        (traces.collect(), text.len())
    }
}

/// A store that reports what it is doing.
pub struct Watched<S> {
    pub store: S,
    /// Whether it flushes to the disk.
    pub syncs: bool,
    pub outside: Outside,
}

impl<S: SessionStore> Watched<S> {
    async fn during<T>(
        &self,
        session: &SessionId,
        phase: Phase,
        work: impl Future<Output = T> + Send,
    ) -> T {
        self.outside.enter(session.as_str(), phase);
        let done = work.await;
        self.outside.enter(session.as_str(), Phase::Other);
        done
    }
}

#[async_trait]
impl<S: SessionStore> SessionStore for Watched<S> {
    async fn claim(&self, session: &SessionId, ttl: Duration) -> Result<Claimed, StoreError> {
        self.store.claim(session, ttl).await
    }

    async fn claim_due(
        &self,
        request: &DueRequest,
        ttl: Duration,
    ) -> Result<DueSessions, StoreError> {
        self.store.claim_due(request, ttl).await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<InboxSeq, StoreError> {
        self.store.renew(lease, ttl).await
    }

    async fn release(&self, lease: &Lease, read: InboxSeq) -> Result<Released, StoreError> {
        self.store.release(lease, read).await
    }

    async fn append(&self, lease: &Lease, batch: Batch<'_>) -> Result<Appended, StoreError> {
        let phase = match batch {
            _ if batch.entries.iter().any(|entry| entry.snapshot) => Phase::Snapshot,
            // Next to the sync, the write before it takes no time.
            _ if batch.flush && self.syncs => Phase::Sync,
            _ => Phase::Append,
        };
        self.during(&lease.session, phase, self.store.append(lease, batch)).await
    }

    async fn send(&self, to: &SessionId, messages: &[Message]) -> Result<Sent, StoreError> {
        self.during(to, Phase::Message, self.store.send(to, messages)).await
    }

    async fn read(
        &self,
        session: &SessionId,
        request: ReadRequest,
    ) -> Result<Option<Page>, StoreError> {
        self.store.read(session, request).await
    }

    async fn list(
        &self,
        filter: &Filter,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Listing, StoreError> {
        self.store.list(filter, after, limit).await
    }

    async fn remove(&self, lease: &Lease, what: Remove) -> Result<(), StoreError> {
        self.store.remove(lease, what).await
    }
}
