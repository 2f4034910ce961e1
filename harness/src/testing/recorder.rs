//! A store that notes what it was asked.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::id::{InterruptId, Seq, SessionId};
use crate::store::{
    Appended, Batch, Claim, Claimed, Facts, Filter, From, Guarantees, Lease, Letter, Listing, Mail,
    OpenQuestion, Page, Posted, Remove, SessionStore, StoreError,
};

/// What a store was asked to change. Reading is not written down.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Asked {
    /// A claim; `session` is the one that was asked for or given.
    Claim {
        /// The session; `None` if none was due.
        session: Option<SessionId>,
        /// Whether a lease was given.
        done: bool,
    },
    /// A renewal, or a release.
    Renew {
        /// The lease.
        lease: Lease,
        /// For how long; zero releases.
        ttl: Duration,
        /// Whether the store said that it was done.
        done: bool,
    },
    /// A batch.
    Append {
        /// The lease.
        lease: Lease,
        /// Where it was to go.
        after: Seq,
        /// Its entries, each with whether it is a snapshot.
        entries: Vec<(Vec<u8>, bool)>,
        /// Its facts.
        facts: Option<Facts>,
        /// The questions it opens.
        ask: Vec<OpenQuestion>,
        /// The questions it closes.
        close: Vec<InterruptId>,
        /// Whether it was to be flushed.
        flush: bool,
        /// Whether the store said that it was done.
        done: bool,
    },
    /// Letters.
    Post {
        /// To which session.
        to: SessionId,
        /// The letters.
        letters: Vec<Letter>,
        /// Whether the store said that they are there.
        done: bool,
    },
    /// A removal.
    Remove {
        /// The lease.
        lease: Lease,
        /// What was to be removed.
        what: Remove,
        /// Whether the store said that it was done.
        done: bool,
    },
}

/// What a [`Recorder`] has written down, in the order in which the calls returned. Its clones show
/// the same.
#[derive(Clone, Debug, Default)]
pub struct Record {
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Record {
    /// Everything so far.
    #[must_use]
    pub fn all(&self) -> Vec<Asked> {
        self.with(|asked| asked.clone())
    }

    /// Forgets everything so far.
    pub fn clear(&self) {
        self.with(Vec::clear);
    }

    /// The entries that were to be appended to a session, each time they were.
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

    /// How many calls `which` picks.
    #[must_use]
    pub fn count(&self, which: impl Fn(&Asked) -> bool) -> usize {
        self.with(|asked| asked.iter().filter(|asked| which(asked)).count())
    }

    /// Makes sure that no call is one that `which` picks.
    ///
    /// # Panics
    /// If there is one, and shows it.
    #[track_caller]
    pub fn assert_none(&self, what: &str, which: impl Fn(&Asked) -> bool) {
        let found = self.with(|asked| asked.iter().find(|asked| which(asked)).cloned());
        assert!(found.is_none(), "{what}: the store was asked {found:?}");
    }

    /// Makes sure that no entry and no letter that the store was given holds these bytes.
    ///
    /// # Panics
    /// If one does, and shows it.
    #[track_caller]
    pub fn assert_not_written(&self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        let within = |text: &[u8]| {
            bytes.is_empty() || text.windows(bytes.len()).any(|window| window == bytes)
        };
        let what = format!("`{}` should not be written", String::from_utf8_lossy(bytes));
        self.assert_none(&what, |asked| match asked {
            Asked::Append { entries, .. } => entries.iter().any(|(entry, _)| within(entry)),
            Asked::Post { letters, .. } => letters.iter().any(|letter| within(&letter.body)),
            _ => false,
        });
    }

    fn with<T>(&self, with: impl FnOnce(&mut Vec<Asked>) -> T) -> T {
        with(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A store that writes down what it is asked to change.
///
/// ```
/// use harness::store::{Claim, MemoryStore, SessionStore};
/// use harness::testing::{Asked, Recorder};
/// use harness::SessionId;
/// use std::time::Duration;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = Recorder::new(MemoryStore::new());
/// let record = store.record();
/// let id = SessionId::new("order-17")?;
/// store.claim(Claim::One(&id), Duration::from_secs(1)).await?;
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
    /// Stands before `store`.
    pub fn new(store: S) -> Self {
        Self { store, record: Record::default() }
    }

    /// What was written down.
    pub fn record(&self) -> Record {
        self.record.clone()
    }

    /// The store behind.
    pub fn inner(&self) -> &S {
        &self.store
    }

    fn note(&self, asked: Asked) {
        self.record.with(|all| all.push(asked));
    }
}

#[async_trait]
impl<S: SessionStore> SessionStore for Recorder<S> {
    fn guarantees(&self) -> Guarantees {
        self.store.guarantees()
    }

    async fn claim(&self, what: Claim<'_>, ttl: Duration) -> Result<Option<Claimed>, StoreError> {
        let claimed = self.store.claim(what, ttl).await;
        let given = claimed.as_ref().ok().and_then(Option::as_ref);
        let session = match (given, what) {
            (Some(given), _) => Some(given.lease.session.clone()),
            (None, Claim::One(session)) => Some(session.clone()),
            (None, Claim::Due { .. }) => None,
        };
        self.note(Asked::Claim { session, done: given.is_some() });
        claimed
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<Mail, StoreError> {
        let renewed = self.store.renew(lease, ttl).await;
        self.note(Asked::Renew { lease: lease.clone(), ttl, done: renewed.is_ok() });
        renewed
    }

    async fn append(&self, lease: &Lease, batch: Batch<'_>) -> Result<Appended, StoreError> {
        let appended = self.store.append(lease, batch).await;
        let entries = batch.entries.iter().map(|entry| (entry.bytes.to_vec(), entry.snapshot));
        self.note(Asked::Append {
            lease: lease.clone(),
            after: batch.after,
            entries: entries.collect(),
            facts: batch.facts.cloned(),
            ask: batch.ask.to_vec(),
            close: batch.close.to_vec(),
            flush: batch.flush,
            done: appended.is_ok(),
        });
        appended
    }

    async fn post(&self, to: &SessionId, letters: &[Letter]) -> Result<Posted, StoreError> {
        let posted = self.store.post(to, letters).await;
        let done = matches!(posted, Ok(Posted::Here(_)));
        self.note(Asked::Post { to: to.clone(), letters: letters.to_vec(), done });
        posted
    }

    async fn read(
        &self,
        session: &SessionId,
        from: From,
        mail: Mail,
        limit: u64,
    ) -> Result<Option<Page>, StoreError> {
        self.store.read(session, from, mail, limit).await
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
