//! Encoding entries, folding them, and appending them in batches.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::clock::UtcMillis;
use crate::id::{InterruptId, Seq};
use crate::log::{Entry, EntryKind, Saved, Snapshot};
use crate::store::{
    Appended, Batch, InboxSeq, Lease, NewEntry, OpenInterrupt, SessionStore, StoreError,
};

use super::Durability;
use super::keeper;
use super::watch::Watch;

/// How long a commit may wait for others in [`Durability::Relaxed`].
const RELAXED: Duration = Duration::from_millis(100);

/// Before a snapshot is worth its bytes, this much must have been written beyond what the state
/// weighs.
const SNAPSHOT_BYTES: u64 = 64 * 1024;

/// The waits before the same bytes are sent again to a store that failed.
const RESENDS: [Duration; 4] = [
    Duration::from_millis(10),
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(2),
];

/// When entries are appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// As the mode of the journal says.
    Mode,
    /// Now; they need not survive a loss of power.
    Kept,
    /// Now, and durably, with all before.
    Now,
}

/// Tells of entries once they are durable, as far as they are to be.
pub(crate) type Tell = Box<dyn FnOnce(Seq) + Send>;

/// Why nothing more can be written.
#[derive(Clone, Debug)]
pub(crate) enum Broken {
    /// Somebody else has the lease, or it was not renewed in time.
    LeaseLost,
    /// The store failed.
    Store(Arc<StoreError>),
    /// The log does not add up to the state.
    NotReplayable { field: String },
    /// An entry does not encode, or does not fit the log.
    Unsound(String),
}

/// What became of entries that were written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receipt {
    /// The state weighs little against what was written since it was last written whole.
    pub(crate) snapshot_due: bool,
}

/// What is to be done about entries in the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) enum LaidUp {
    /// They are to be appended, and perhaps to be durable.
    Now { flush: bool },
    /// They wait; the `first` of them for its time.
    Later { first: bool },
}

/// Writes entries behind each other.
pub(crate) struct Writer {
    store: Arc<dyn SessionStore>,
    lease: Lease,
    watch: Arc<Watch>,
    durability: Durability,
    /// The fold of the log, with everything that waits in the buffer.
    saved: Saved,
    /// The last entry in the store.
    head: Seq,
    /// Entries on their way into the store, one behind the other.
    bytes: Vec<u8>,
    /// Where each of them ends, and whether it is a snapshot.
    ends: Vec<(usize, bool)>,
    /// When the last of them was made.
    at: UtcMillis,
    ask: Vec<OpenInterrupt>,
    close: Vec<InterruptId>,
    tells: Vec<Tell>,
    /// The phase, or what else is indexed, has changed.
    facts_changed: bool,
    /// Everything in the store is durable.
    flushed: bool,
    /// Bytes since the last snapshot.
    since: u64,
    /// At how many it is worth weighing the state again.
    weigh_at: u64,
    broken: Option<Broken>,
}

impl Writer {
    pub(super) fn new(
        store: Arc<dyn SessionStore>,
        lease: Lease,
        watch: Arc<Watch>,
        saved: Saved,
        head: Seq,
        since: u64,
    ) -> Self {
        Self {
            store,
            lease,
            watch,
            durability: Durability::Step,
            saved,
            head,
            bytes: Vec::new(),
            ends: Vec::new(),
            at: UtcMillis::now(),
            ask: Vec::new(),
            close: Vec::new(),
            tells: Vec::new(),
            facts_changed: false,
            flushed: true,
            since,
            weigh_at: SNAPSHOT_BYTES,
            broken: None,
        }
    }

    pub(super) fn durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    pub(super) fn saved(&self) -> &Saved {
        &self.saved
    }

    /// The first entry of a session, which the fold begins with, waits for the next.
    pub(super) fn lay_first(&mut self, bytes: Vec<u8>) {
        self.ends.push((bytes.len(), false));
        self.bytes = bytes;
    }

    pub(super) fn head(&self) -> Seq {
        self.head
    }

    /// Writes under another lease from here on.
    pub(super) fn hold(&mut self, lease: Lease) {
        self.lease = lease;
    }

    pub(super) fn pass_over(&mut self, mail: InboxSeq) {
        if mail > self.saved.mail {
            self.saved.mail = mail;
            self.facts_changed = true;
        }
    }

    /// Nothing more is written from here on.
    pub(super) fn give_up(&mut self, broken: Broken) -> Broken {
        self.broken.get_or_insert(broken).clone()
    }

    pub(super) fn check(&self) -> Result<(), Broken> {
        self.broken.clone().map_or(Ok(()), Err)
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.broken.is_some() || (self.flushed && self.ends.is_empty() && !self.facts_changed)
    }

    /// Takes entries into the buffer, and what is told of them. Says whether they are appended at
    /// once, and else, whether they are the first that wait.
    pub(super) fn lay_up(
        &mut self,
        entries: impl IntoIterator<Item = Entry>,
        when: When,
        tells: &mut Vec<Tell>,
    ) -> Result<LaidUp, Broken> {
        self.check()?;
        let was_empty = self.ends.is_empty();
        for entry in entries {
            if let Err(broken) = self.take(entry) {
                return Err(self.give_up(broken));
            }
        }
        self.tells.append(tells);
        if when != When::Mode || self.durability == Durability::Step {
            return Ok(LaidUp::Now { flush: when != When::Kept });
        }
        Ok(LaidUp::Later { first: was_empty && self.durability == Durability::Relaxed })
    }

    pub(super) async fn write_snapshot(&mut self) -> Result<(), Broken> {
        self.check()?;
        let kind = EntryKind::Snapshot(Snapshot(Box::new(self.saved.clone())));
        let entry = Entry { at: UtcMillis::now(), spent: None, kind };
        let from = self.bytes.len();
        if entry.encode(&mut self.bytes).is_err() {
            // A state that is too large to be written whole goes on without: its log is all there.
            self.weigh_at = u64::MAX;
            return Ok(());
        }
        if let Err(broken) = self.taken(entry, from) {
            return Err(self.give_up(broken));
        }
        self.since = 0;
        self.weigh_at = SNAPSHOT_BYTES;
        if self.durability == Durability::Step {
            // It adds nothing to what is durable already.
            self.send(false).await?;
        }
        Ok(())
    }

    /// Encodes an entry and applies it to the fold.
    fn take(&mut self, entry: Entry) -> Result<(), Broken> {
        let from = self.bytes.len();
        entry.encode(&mut self.bytes).map_err(|error| Broken::Unsound(error.to_string()))?;
        self.taken(entry, from)
    }

    /// Applies an entry to the fold whose bytes begin at `from`.
    fn taken(&mut self, entry: Entry, from: usize) -> Result<(), Broken> {
        let snapshot = matches!(entry.kind, EntryKind::Snapshot(_));
        self.index(&entry);
        self.at = entry.at;
        self.saved.apply(entry).map_err(|error| Broken::Unsound(error.to_string()))?;
        self.since += (self.bytes.len() - from) as u64;
        self.ends.push((self.bytes.len(), snapshot));
        Ok(())
    }

    /// Notes what the entry changes in the index.
    fn index(&mut self, entry: &Entry) {
        match &entry.kind {
            EntryKind::Asked(asked) => {
                for question in &asked.questions {
                    // Another question under a key takes the place of the one before.
                    let older = self.saved.questions.iter().filter(|older| {
                        older.interrupt.key == question.key && older.interrupt.id != question.id
                    });
                    self.close.extend(older.map(|older| older.interrupt.id.clone()));
                    self.ask.push(OpenInterrupt {
                        id: question.id.clone(),
                        since: question.asked_at,
                        expires: question.expires_at,
                    });
                }
            }
            EntryKind::Resolved(resolved) => self.close.push(resolved.id.clone()),
            EntryKind::Opened(_)
            | EntryKind::Adopted(_)
            | EntryKind::RunStarted(_)
            | EntryKind::Recovered(_)
            | EntryKind::Settled(_) => {
                self.facts_changed = true;
                if matches!(&entry.kind, EntryKind::RunStarted(run) if run.start.is_some()) {
                    self.close_all();
                }
            }
            EntryKind::Committed(_) | EntryKind::Diverted(_) | EntryKind::Finishing(_)
                if !self.saved.questions.is_empty() =>
            {
                self.close_all();
            }
            _ => {}
        }
    }

    /// The position is left, with whatever it still asks.
    fn close_all(&mut self) {
        let open = self.saved.questions.iter().filter(|question| question.resolution.is_none());
        self.close.extend(open.map(|question| question.interrupt.id.clone()));
    }

    /// Whether so much was written since the last snapshot that another one is worth its bytes:
    /// more than four times the state, and 64 KiB. A state that grows with what is written never
    /// gets one: its log is no longer than itself.
    pub(super) fn is_snapshot_due(&mut self) -> bool {
        if self.since < self.weigh_at {
            return false;
        }
        let mut weight = Weight(0);
        if serde_json::to_writer(&mut weight, &self.saved.state).is_err() {
            return false;
        }
        self.weigh_at = SNAPSHOT_BYTES + 4 * weight.0;
        self.since >= self.weigh_at
    }

    /// Appends what waits, or only makes durable what is there.
    pub(super) async fn send(&mut self, flush: bool) -> Result<(), Broken> {
        self.check()?;
        if self.is_flushed() {
            return Ok(());
        }
        let facts = self.facts_changed.then(|| self.saved.facts());
        let one: [NewEntry<'_>; 1];
        let many: Vec<NewEntry<'_>>;
        let entries = match self.ends[..] {
            [(end, snapshot)] => {
                one = [NewEntry { bytes: &self.bytes[..end], snapshot }];
                &one[..]
            }
            ref ends => {
                let starts = std::iter::once(0).chain(ends.iter().map(|(end, _)| *end));
                many = starts
                    .zip(ends)
                    .map(|(start, (end, snapshot))| NewEntry {
                        bytes: &self.bytes[start..*end],
                        snapshot: *snapshot,
                    })
                    .collect();
                &many
            }
        };
        let batch = Batch {
            after: self.head,
            // An entry was made just now: the clock need not be read again.
            at: if entries.is_empty() { UtcMillis::now() } else { self.at },
            entries,
            summary: facts.as_ref(),
            open: &self.ask,
            close: &self.close,
            flush,
        };
        let appended = match self.store.append(&self.lease, batch).await {
            Ok(appended) => Ok(appended),
            // What few appends need is boxed, so that it costs the others nothing.
            Err(error) => {
                let (store, lease, watch) = (&*self.store, &self.lease, &*self.watch);
                Box::pin(resend(store, lease, watch, batch, error)).await
            }
        };
        let appended = appended.map_err(|broken| {
            self.tells.clear();
            self.broken.get_or_insert(broken).clone()
        })?;
        self.head = appended.head;
        self.watch.has_mail(appended.inbox);
        self.flushed = flush;
        self.facts_changed = false;
        self.bytes.clear();
        self.ends.clear();
        self.ask.clear();
        self.close.clear();
        for tell in self.tells.drain(..) {
            tell(appended.head);
        }
        Ok(())
    }
}

/// Sends the same bytes again, for as long as the store may come back.
async fn resend(
    store: &dyn SessionStore,
    lease: &Lease,
    watch: &Watch,
    batch: Batch<'_>,
    mut error: StoreError,
) -> Result<Appended, Broken> {
    for wait in RESENDS {
        if !matches!(error, StoreError::Unavailable { .. }) || watch.is_lost() {
            break;
        }
        tracing::warn!(session = %lease.session, %error, "an append is sent again");
        tokio::time::sleep(wait).await;
        match store.append(lease, batch).await {
            Ok(appended) => return Ok(appended),
            Err(again) => error = again,
        }
    }
    Err(match error {
        StoreError::Fenced { .. } | StoreError::Gone { .. } => Broken::LeaseLost,
        error => Broken::Store(Arc::new(error)),
    })
}

/// Appends what waits in the buffer once its time is over: by the clock of the program's runtime, and
/// by that of the thread that keeps leases, as a step may block its runtime for longer.
pub(super) fn flush_soon(writer: OwnedMutexGuard<Writer>) {
    let weak = Arc::downgrade(OwnedMutexGuard::mutex(&writer));
    drop(writer);
    keeper::spawn(flush_in_time(weak.clone()));
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(flush_in_time(weak));
    }
}

async fn flush_in_time(writer: Weak<Mutex<Writer>>) {
    tokio::time::sleep(RELAXED).await;
    if let Some(writer) = writer.upgrade() {
        let mut writer = writer.lock_owned().await;
        // A failure is kept for whoever writes next.
        let _ = writer.send(true).await;
    }
}

/// Counts bytes.
struct Weight(u64);

impl std::io::Write for Weight {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
