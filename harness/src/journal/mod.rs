//! The log of a session as the run that holds it writes it.
//!
//! A journal is a sink: the run applies a change to its session and hands the entry over. The
//! journal buffers it, folds it into the JSON of the state, and appends what waits through one
//! [`Writer`], which assigns the seqs. An append that was begun is never dropped. A store that fails
//! without saying whether it has appended gets the same bytes again, which it recognizes. So no step
//! is committed twice, and none is lost.

mod broken;
mod buffer;
mod lease;
mod pending;
mod read;
mod renewer;
mod room;
mod status;
mod undropped;
mod walk;
mod when;
mod writer;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Mutex as AsyncMutex;
use tokio::sync::futures::Notified;

use crate::clock::boot_millis;
use crate::id::{Seq, SessionId};
use crate::inbox::{Unread, summary, unread};
use crate::session::{Change, Entry, Names, Opened, Session, Snapshot, StepRef, open_in_store};
use crate::state::Schema;
use crate::store::{
    InboxSeq, Lease, ReadRequest, Released, SessionStore, SessionSummary, StoreError,
};

pub(crate) use broken::Broken;
pub(crate) use lease::LeaseGuard;
pub(crate) use pending::Notice;
pub(crate) use read::{Read, ReadError, read};
pub(crate) use renewer::LeaseObserver;
pub(crate) use walk::{Place, walk};
pub use when::Durability;
pub(crate) use when::When;

use buffer::Buffer;
use renewer::Renewal;
use status::LeaseStatus;
use undropped::undropped_again;
pub(crate) use undropped::{in_background, in_background_again};
use writer::Writer;

/// How long a commit may wait for others in [`Durability::Relaxed`].
const RELAXED: Duration = Duration::from_millis(100);

/// The waits before a lease that came due is renewed again: the store failed, or its answer took
/// longer than the lease lasts.
const RENEWALS: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_millis(10),
    Duration::from_millis(100),
    Duration::from_millis(500),
];

/// What may wait in the buffer, in bytes, whatever the mode. Far below what a store takes at once.
const MAX_BUFFERED: usize = 8 << 20;

/// Writes the log of one session for as long as one run holds it.
pub(crate) struct Journal {
    shared: Arc<Shared>,
    ttl: Duration,
    durability: Durability,
    /// The lease was released.
    released: AtomicBool,
}

/// What the journal shares with appends under way.
struct Shared {
    store: Arc<dyn SessionStore>,
    session: SessionId,
    status: Arc<LeaseStatus>,
    buffer: Mutex<Buffer>,
    writer: AsyncMutex<Writer>,
    /// Keeps the lease until it is taken out.
    renewal: Mutex<Option<Renewal>>,
}

impl Shared {
    fn buffer(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn renewal(&self) -> MutexGuard<'_, Option<Renewal>> {
        self.renewal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Messages up to this one are in the inbox: one of them may be a stop request.
    fn note_inbox(&self, inbox: InboxSeq) {
        if inbox > self.status.inbox() {
            self.status.note_inbox(inbox);
            if let Some(renewal) = &*self.renewal() {
                renewal.check_inbox();
            }
        }
    }

    async fn send(&self, flush: bool) -> Result<(), Broken> {
        let mut writer = match self.writer.try_lock() {
            Ok(free) => free,
            Err(_) => Box::pin(self.writer.lock()).await,
        };
        writer.send(self, flush).await
    }
}

/// Where a journal begins to write.
pub(crate) struct Start {
    /// The JSON of the state as of the head.
    pub(crate) state: Value,
    /// The inbox messages applied so far.
    pub(crate) inbox: InboxSeq,
    /// The last entry in the store.
    pub(crate) head: Seq,
    /// The bytes since the last snapshot.
    pub(crate) since: u64,
}

impl Journal {
    /// Writes under a lease from `start` on.
    pub(crate) fn new(guard: LeaseGuard, start: Start, durability: Durability) -> Self {
        let lease::Parts { store, lease, ttl, status, renewal } = guard.into_parts();
        let Start { state, inbox, head, since } = start;
        let shared = Arc::new(Shared {
            store,
            session: lease.session.clone(),
            status,
            buffer: Mutex::new(Buffer::new(state, inbox, since)),
            writer: AsyncMutex::new(Writer::new(lease, head)),
            renewal: Mutex::new(renewal),
        });
        Self { shared, ttl, durability, released: AtomicBool::new(false) }
    }

    /// Applies an entry to the session and buffers it.
    ///
    /// # Errors
    /// An entry that does not follow on the session or cannot be written, or an earlier failure.
    /// Nothing more is written then.
    pub(crate) fn record<P: StepRef>(
        &self,
        session: &mut Session<P>,
        entry: Entry<P>,
        names: &impl Names<P>,
    ) -> Result<(), Broken> {
        let (closed, was_parked) = (session.closed_by(&entry.change), session.is_parked());
        session.apply(&entry).map_err(Broken::unsound)?;
        let summary = entry
            .change
            .changes_summary()
            .then(|| session.summary(&names.name(&session.cursor.step)));
        let mut buffer = self.shared.buffer();
        buffer.push(names.entry(entry), closed)?;
        if was_parked && !session.is_parked() {
            // What was asked where it stands again was closed when the last steps began.
            buffer.pending().reopen(session.open_interrupts().map(open_in_store));
        }
        if let Some(summary) = summary {
            buffer.inbox = buffer.inbox.max(summary.inbox);
            buffer.pending().summary = Some(summary);
        }
        Ok(())
    }

    /// Buffers the first entry of a session.
    pub(crate) fn open(&self, opened: Opened) -> Result<(), Broken> {
        let opened = Entry::now(Change::Opened(Box::new(opened)));
        self.shared.buffer().push(opened, Vec::new())
    }

    /// Buffers the first entry of a session whose first turn has not begun.
    pub(crate) fn open_at_rest(
        &self,
        opened: Opened,
        summary: SessionSummary,
    ) -> Result<(), Broken> {
        self.open(opened)?;
        self.shared.buffer().pending().summary = Some(summary);
        Ok(())
    }

    /// Runs the notice that `make` makes of the size of the last entry that was pushed, once that
    /// entry is in the store.
    pub(crate) fn notify(&self, make: impl FnOnce(u64) -> Notice) {
        self.shared.buffer().notify(make);
    }

    /// Appends what waits, when `when` says.
    ///
    /// # Errors
    /// Why nothing more can be written.
    pub(crate) async fn commit(&self, when: When) -> Result<(), Broken> {
        let deferred = when == When::Mode && self.durability != Durability::Step;
        if deferred {
            let first = {
                let buffer = self.shared.buffer();
                buffer.check()?;
                let pending = buffer.pending.as_ref();
                match pending.map_or(0, |it| it.bytes()) < MAX_BUFFERED {
                    true => Some(pending.is_some_and(|it| it.has_one_entry())),
                    false => None,
                }
            };
            if let Some(first) = first {
                if first && self.durability == Durability::Relaxed {
                    self.flush_soon();
                }
                return Ok(());
            }
        }
        self.append(when != When::Kept).await
    }

    /// Makes everything written so far durable.
    pub(crate) async fn flush(&self) -> Result<(), Broken> {
        self.append(true).await
    }

    async fn append(&self, flush: bool) -> Result<(), Broken> {
        {
            let buffer = self.shared.buffer();
            buffer.check()?;
            if buffer.is_empty() && buffer.flushed && self.shared.writer.try_lock().is_ok() {
                return Ok(());
            }
        }
        let shared = Arc::clone(&self.shared);
        undropped_again(move || {
            let shared = Arc::clone(&shared);
            async move { shared.send(flush).await }
        })
        .await
    }

    /// Appends what waits once its time is over: by the clock of the program's runtime, and by that
    /// of the lease thread, as a step may block its runtime for longer.
    fn flush_soon(&self) {
        let weak = Arc::downgrade(&self.shared);
        renewer::spawn(flush_in_time(weak.clone()));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(flush_in_time(weak));
        }
    }

    /// Whether a snapshot is due; `size` is that of the session without its state. It may lock the
    /// session, so the buffer is not locked while it runs.
    pub(crate) fn is_snapshot_due(&self, size: impl FnOnce() -> u64) -> bool {
        if !self.shared.buffer().is_size_due() {
            return false;
        }
        let size = size();
        self.shared.buffer().is_snapshot_due(size)
    }

    /// Buffers a snapshot of the session as of the last entry. `live` is the state as it is in
    /// memory: if the log replays to another one, nothing more is written. Says whether there is
    /// something to append.
    pub(crate) fn snapshot(
        &self,
        session: Session,
        live: Value,
        schema: &Schema,
    ) -> Result<bool, Broken> {
        let mut buffer = self.shared.buffer();
        if let Some(field) = schema.difference(&live, &buffer.state) {
            let field = Arc::new(field.to_owned());
            return Err(buffer.give_up(Broken::NotReplayable { field }));
        }
        let pushed = buffer.push_snapshot(Snapshot { session, state: live })?;
        Ok(pushed && self.durability == Durability::Step)
    }

    /// The JSON of the state, entries in the buffer included.
    pub(crate) fn state(&self) -> Value {
        self.shared.buffer().state.clone()
    }

    /// Whether the lease is lost, or may be.
    pub(crate) fn may_be_lost(&self) -> bool {
        self.shared.status.may_be_lost()
    }

    /// Whether the lease is known to be lost: nothing brings it back.
    pub(crate) fn is_lost(&self) -> bool {
        self.shared.status.is_lost()
    }

    /// Whether the lease holds. One that was not renewed in time, because the process or its machine
    /// stood still, is renewed here, unless another run has claimed the session. The store decides
    /// that by the fence: until it has answered in time, the lease may be lost.
    pub(crate) async fn holds(&self) -> bool {
        let status = &self.shared.status;
        let mut waits = RENEWALS.into_iter();
        loop {
            if !status.may_be_lost() {
                return true;
            }
            if status.is_lost() {
                return false;
            }
            let since = boot_millis();
            let lease = self.lease().await;
            match self.shared.store.renew(&lease, self.ttl).await {
                Ok(inbox) => {
                    status.renewed(since, self.ttl);
                    self.shared.note_inbox(inbox);
                }
                Err(error @ StoreError::Unavailable { .. }) => {
                    tracing::warn!(session = %lease.session, %error, "failed to renew a lease");
                }
                Err(_) => return false,
            }
            if status.may_be_lost() {
                let Some(wait) = waits.next() else { return false };
                tokio::time::sleep(wait).await;
            }
        }
    }

    async fn lease(&self) -> Lease {
        self.shared.writer.lock().await.lease.clone()
    }

    /// Nothing more is written: what waits in the buffer is lost.
    pub(crate) fn give_up(&self) {
        self.shared.buffer().give_up(Broken::LeaseLost);
    }

    /// The store and the session of this journal.
    pub(crate) fn place(&self) -> (&Arc<dyn SessionStore>, &SessionId) {
        (&self.shared.store, &self.shared.session)
    }

    /// The store of this journal, how long its leases last, and how durable it writes.
    pub(crate) fn storage(&self) -> (Arc<dyn SessionStore>, Duration, Durability) {
        (Arc::clone(&self.shared.store), self.ttl, self.durability)
    }

    /// The messages that were not applied or passed over, if there may be any.
    ///
    /// # Errors
    /// The store failed, or the session is gone.
    pub(crate) async fn unread(&self) -> Result<Vec<Unread>, Broken> {
        let read = self.shared.buffer().inbox;
        if self.shared.status.inbox() <= read {
            return Ok(Vec::new());
        }
        let request = ReadRequest::messages_after(read);
        match self.shared.store.read(&self.shared.session, request).await {
            Ok(Some(page)) => Ok(unread(page.messages)),
            Ok(None) => Err(Broken::LeaseLost),
            Err(error) => Err(Broken::Store(Arc::new(error))),
        }
    }

    /// Resolves once messages come that were not in the inbox when it was made.
    pub(crate) fn inbox_grown(&self) -> Notified<'_> {
        self.shared.status.inbox_grown()
    }

    /// Notes that messages up to this one were read, so that they are not read again.
    pub(crate) fn pass_over(&self, inbox: InboxSeq, summary: SessionSummary) {
        let mut buffer = self.shared.buffer();
        if inbox > buffer.inbox {
            buffer.inbox = inbox;
            buffer.pending().summary = Some(SessionSummary { inbox, ..summary });
        }
    }

    /// Buffers what the store lists of the session, without an entry.
    pub(crate) fn summarize(&self, summary: SessionSummary) {
        let mut buffer = self.shared.buffer();
        let inbox = buffer.inbox.max(summary.inbox);
        buffer.pending().summary = Some(SessionSummary { inbox, ..summary });
    }

    /// Releases the lease. Says whether the inbox has messages that were not read.
    pub(crate) async fn release(&self) -> Released {
        self.released.store(true, Ordering::SeqCst);
        // What was passed over is counted; nothing depends on it.
        let _ = self.append(false).await;
        self.stop_renewal();
        self.shared.status.lose();
        let lease = self.lease().await;
        let read = self.shared.buffer().inbox;
        lease::release(&self.shared.store, &lease, read).await
    }

    fn stop_renewal(&self) {
        self.shared.renewal().take();
    }

    /// Claims the session again that was just released, unless another run was faster.
    pub(crate) async fn reclaim(&self, run: Arc<dyn LeaseObserver>) -> bool {
        let (store, session) = self.place();
        let mut writer = self.shared.writer.lock().await;
        // Claimed only to find that another run has advanced it, the session would be refused to a
        // caller that answers in that moment. What is left is the moment between this look and the
        // claim.
        let page = summary(&**store, session).await;
        if page.is_ok_and(|page| page.is_none_or(|page| page.head != writer.head)) {
            return false;
        }
        let since = boot_millis();
        let Ok(claimed) = store.claim(session, self.ttl).await else { return false };
        if claimed.head != writer.head {
            let _ = store.release(&claimed.lease, claimed.inbox).await;
            return false;
        }
        writer.lease = claimed.lease.clone();
        let status = &self.shared.status;
        status.claimed(since, self.ttl);
        status.note_inbox(claimed.inbox);
        let (store, status) = (Arc::clone(store), Arc::clone(status));
        let (lease, ttl) = (claimed.lease, self.ttl);
        let renewal = Renewal::start(store, lease, ttl, status, run, InboxSeq(0));
        *self.shared.renewal() = Some(renewal);
        self.released.store(false, Ordering::SeqCst);
        true
    }
}

async fn flush_in_time(shared: Weak<Shared>) {
    tokio::time::sleep(RELAXED).await;
    if let Some(shared) = shared.upgrade() {
        // The next write reports a failure.
        let _ = shared.send(true).await;
    }
}

/// The bytes that a value takes as JSON.
pub(crate) fn json_size(value: &impl serde::Serialize) -> u64 {
    struct Counted(u64);

    impl std::io::Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let mut counted = Counted(0);
    // A value that does not encode is not written either.
    let _ = serde_json::to_writer(&mut counted, value);
    counted.0
}

impl Drop for Journal {
    /// A run that is dropped before its first step releases its session, too, once an append that
    /// was begun is over.
    fn drop(&mut self) {
        if self.released.load(Ordering::SeqCst) {
            return;
        }
        self.stop_renewal();
        let shared = Arc::clone(&self.shared);
        in_background(async move {
            let writer = shared.writer.lock().await;
            let _ = shared.store.release(&writer.lease, InboxSeq(0)).await;
        });
    }
}
