//! A store that records its calls.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::id::{AgentId, InterruptId, Seq, SessionId};
use crate::store::{
    Appended, Batch, Claimed, DueRequest, DueSessions, Filter, InboxSeq, Lease, Listing, Message,
    OpenInterrupt, Page, ReadRequest, Released, Remove, Sent, SessionStore, SessionSummary,
    StoreError,
};

/// A call that changes a store. Reads are not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Asked {
    /// A claim.
    Claim {
        /// The session.
        session: SessionId,
        /// Whether the claim succeeded.
        done: bool,
    },
    /// A renewal.
    Renew {
        /// The lease.
        lease: Lease,
        /// The new time to live.
        ttl: Duration,
        /// Whether the store acknowledged it.
        done: bool,
    },
    /// A release.
    Release {
        /// The lease.
        lease: Lease,
        /// The last message that the holder had read.
        read: InboxSeq,
        /// Whether the store acknowledged it.
        done: bool,
    },
    /// A batch.
    Append {
        /// The lease.
        lease: Lease,
        /// The head that the writer assumed.
        after: Seq,
        /// The entries, each with whether it is a snapshot.
        entries: Vec<(Vec<u8>, bool)>,
        /// Its summary.
        summary: Option<SessionSummary>,
        /// The interrupts to open.
        open: Vec<OpenInterrupt>,
        /// The interrupts to close.
        close: Vec<InterruptId>,
        /// Whether the batch had to be flushed.
        flush: bool,
        /// Whether the store acknowledged it.
        done: bool,
    },
    /// Messages.
    Send {
        /// The receiver.
        to: SessionId,
        /// The messages.
        messages: Vec<Message>,
        /// Whether the store accepted them.
        done: bool,
    },
    /// A removal.
    Remove {
        /// The lease.
        lease: Lease,
        /// What to remove.
        what: Remove,
        /// Whether the store acknowledged it.
        done: bool,
    },
}

/// The calls that a [`Recorder`] has recorded, in the order in which they returned. Its clones share
/// them.
#[derive(Clone, Debug, Default)]
pub struct Record {
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Record {
    /// All calls so far.
    #[must_use]
    pub fn all(&self) -> Vec<Asked> {
        self.with(|asked| asked.clone())
    }

    /// Removes all calls so far.
    pub fn clear(&self) {
        self.with(Vec::clear);
    }

    /// The entries of all appends to a session, in order, with repetitions.
    #[must_use]
    pub fn entries(&self, session: &SessionId) -> Vec<Vec<u8>> {
        self.with(|asked| {
            asked
                .iter()
                .filter_map(|asked| match asked {
                    Asked::Append { lease, entries, .. } if lease.session == *session => {
                        Some(entries.iter().map(|(bytes, _)| bytes.clone()))
                    }
                    _ => None,
                })
                .flatten()
                .collect()
        })
    }

    /// How many calls match `which`.
    #[must_use]
    pub fn count(&self, which: impl Fn(&Asked) -> bool) -> usize {
        self.with(|asked| asked.iter().filter(|asked| which(asked)).count())
    }

    /// Asserts that no call matches `which`.
    ///
    /// # Panics
    /// If one does; the message shows it.
    #[track_caller]
    pub fn assert_none(&self, what: &str, which: impl Fn(&Asked) -> bool) {
        let found = self.with(|asked| asked.iter().find(|asked| which(asked)).cloned());
        assert!(found.is_none(), "{what}: found {found:?}");
    }

    /// Asserts that no entry and no message contains these bytes.
    ///
    /// # Panics
    /// If one does; the message shows it.
    #[track_caller]
    pub fn assert_not_written(&self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        let within = |text: &[u8]| {
            bytes.is_empty() || text.windows(bytes.len()).any(|window| window == bytes)
        };
        let what = format!("`{}` should not be written", String::from_utf8_lossy(bytes));
        self.assert_none(&what, |asked| match asked {
            Asked::Append { entries, .. } => entries.iter().any(|(entry, _)| within(entry)),
            Asked::Send { messages, .. } => messages.iter().any(|message| within(&message.body)),
            _ => false,
        });
    }

    fn with<T>(&self, with: impl FnOnce(&mut Vec<Asked>) -> T) -> T {
        with(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A store that records the calls that change it.
///
/// ```
/// use harness::store::{MemoryStore, SessionStore};
/// use harness::testing::{Asked, Recorder};
/// use harness::SessionId;
/// use std::time::Duration;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = Recorder::new(MemoryStore::new());
/// let record = store.record();
/// let id = SessionId::new("order-17")?;
/// store.claim(&id, Duration::from_secs(1)).await?;
///
/// assert_eq!(record.count(|asked| matches!(asked, Asked::Claim { done: true, .. })), 1);
/// record.assert_none("nothing was written", |asked| matches!(asked, Asked::Append { .. }));
/// record.assert_not_written("secret");
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Recorder<S> {
    store: S,
    record: Record,
}

impl<S> Recorder<S> {
    /// Wraps `store`.
    pub fn new(store: S) -> Self {
        Self { store, record: Record::default() }
    }

    /// The recorded calls.
    pub fn record(&self) -> Record {
        self.record.clone()
    }

    /// The wrapped store.
    pub fn inner(&self) -> &S {
        &self.store
    }

    fn note(&self, asked: Asked) {
        self.record.with(|all| all.push(asked));
    }
}

#[async_trait]
impl<S: SessionStore> SessionStore for Recorder<S> {
    async fn claim(&self, session: &SessionId, ttl: Duration) -> Result<Claimed, StoreError> {
        let claimed = self.store.claim(session, ttl).await;
        self.note(Asked::Claim { session: session.clone(), done: claimed.is_ok() });
        claimed
    }

    async fn claim_due(
        &self,
        request: &DueRequest,
        ttl: Duration,
    ) -> Result<DueSessions, StoreError> {
        let due = self.store.claim_due(request, ttl).await;
        for claimed in due.iter().flat_map(|due| &due.claimed) {
            self.note(Asked::Claim { session: claimed.lease.session.clone(), done: true });
        }
        due
    }

    async fn wait_due(&self, agents: &[AgentId], timeout: Duration) {
        self.store.wait_due(agents, timeout).await;
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<InboxSeq, StoreError> {
        let renewed = self.store.renew(lease, ttl).await;
        self.note(Asked::Renew { lease: lease.clone(), ttl, done: renewed.is_ok() });
        renewed
    }

    async fn release(&self, lease: &Lease, read: InboxSeq) -> Result<Released, StoreError> {
        let released = self.store.release(lease, read).await;
        self.note(Asked::Release { lease: lease.clone(), read, done: released.is_ok() });
        released
    }

    async fn append(&self, lease: &Lease, batch: Batch<'_>) -> Result<Appended, StoreError> {
        let appended = self.store.append(lease, batch).await;
        let entries = batch.entries.iter().map(|entry| (entry.bytes.to_vec(), entry.snapshot));
        self.note(Asked::Append {
            lease: lease.clone(),
            after: batch.after,
            entries: entries.collect(),
            summary: batch.summary.cloned(),
            open: batch.open.to_vec(),
            close: batch.close.to_vec(),
            flush: batch.flush,
            done: appended.is_ok(),
        });
        appended
    }

    async fn send(&self, to: &SessionId, messages: &[Message]) -> Result<Sent, StoreError> {
        let sent = self.store.send(to, messages).await;
        let done = matches!(sent, Ok(Sent::Accepted(_)));
        self.note(Asked::Send { to: to.clone(), messages: messages.to_vec(), done });
        sent
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
        let removed = self.store.remove(lease, what).await;
        self.note(Asked::Remove { lease: lease.clone(), what, done: removed.is_ok() });
        removed
    }
}
