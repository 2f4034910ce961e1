//! Where sessions are kept: the [`SessionStore`] trait and the types of its methods.
//!
//! A session is an append-only log of opaque entries, numbered from 1 without gaps. One holder at a
//! time appends to it: the process that has its [`Lease`]. All other processes send [`Message`]s to
//! its inbox, which the holder reads. Beside these bytes a store keeps a small
//! [summary](SessionSummary) and the [open interrupts](OpenInterrupt), so that sessions and
//! interrupts can be listed without reading a log.
//!
//! A store decides nothing about loops and never decodes an entry. Each method documents what it
//! promises; `Contract` of the feature `testing` checks these promises. What all stores must decide alike is in [`rules`], as pure functions.

mod batch;
mod due;
mod error;
mod lease;
mod list;
mod memory;
mod message;
mod page;
mod request;
pub mod rules;
mod summary;

use std::time::Duration;

use async_trait::async_trait;

pub use batch::{Appended, Batch, NewEntry, Remove};
pub use due::{DueRequest, DueSessions};
pub use error::StoreError;
pub use lease::{Claimed, FormerHolder, Holder, Lease, Released, Token};
pub use list::{Filter, Listing, Row};
pub use memory::MemoryStore;
pub use message::{InboxSeq, Message, Sent, StoredMessage};
pub use page::{Page, StoredEntry};
pub use request::{ReadFrom, ReadRequest};
pub use summary::{OpenInterrupt, Phase, SessionSummary};

use crate::id::{AgentId, SessionId};

/// Keeps sessions: their logs, leases, inboxes and summaries.
///
/// Whatever a store returns several of has one order, in every store: entries by their seq; messages
/// by their number, which is the order of sending; the open interrupts of a session by their ids; the
/// rows of a list by their [keys](Row::key), which is by the bytes of the session's id and then of the
/// interrupt's. Times order nothing.
///
/// All methods may be called from any number of tasks and, where the store is shared, from any
/// number of processes. If the future of a method is dropped, the method has either had no effect or
/// its full effect.
#[async_trait]
pub trait SessionStore: Send + Sync + 'static {
    /// Takes the lease of a session for `ttl`.
    ///
    /// A session that does not exist yet can be claimed. It exists once an entry is appended to it;
    /// until then it is not read, not listed and receives no messages, and only its lease is kept.
    /// The lease is free if there is none, or if the last one was released, has expired, or is held
    /// by a process that is known to be dead. Each claim gets a fence above all earlier ones of the
    /// session, and a token of its own. [`Claimed::former`] reports which of these it was, where the
    /// store knows; it never reports a holder as dead or as released whose process may continue.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if the session is held; [`StoreError::Corrupt`] if the stored bytes are
    /// not the appended bytes; [`StoreError::NewerFormat`] if a newer version has written them. In
    /// the last two cases nothing is written to the session.
    async fn claim(&self, session: &SessionId, ttl: Duration) -> Result<Claimed, StoreError>;

    /// Takes the leases of sessions that are *due*, for `ttl`: of at most [`limit`](DueRequest::limit)
    /// sessions that exist, belong to one of the request's agents, and are not excepted by it. Calls
    /// at the same time get different sessions.
    ///
    /// A session is due when its lease is free and there is something to do with it:
    /// - its phase is [`Running`](Phase::Running), so that the process of its run has ended;
    /// - or its [`due`](SessionSummary::due) time has come, by the store's clock;
    /// - or its inbox has a message after the last one that was read: after
    ///   [`SessionSummary::inbox`], and after what any holder [said it has read](Self::release) when
    ///   it released this session.
    ///
    /// So a session is not due again because of messages that a holder has read and has no use for,
    /// and a lease whose holder stops is due as soon as it expires. [`rules::due_from`] makes this
    /// decision, when something is written: a store keeps its result, ordered by time, and looks at
    /// no other session here. Which of several due sessions are claimed is up to the store.
    ///
    /// A session that [`claim`](Self::claim) would refuse for another reason than that it is held is
    /// reported in [`DueSessions::failed`], and keeps no other session from being claimed.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the store does not answer.
    async fn claim_due(
        &self,
        request: &DueRequest,
        ttl: Duration,
    ) -> Result<DueSessions, StoreError>;

    /// Waits until a session of these agents may have become due, at most for `timeout`. What
    /// becomes due after the first poll of the future ends the wait, where the store notices it: a
    /// message, or a release of a session that has something to do. It may end at any time before,
    /// and nothing is claimed.
    ///
    /// A store that notices nothing waits for the whole time, as this implementation does: its
    /// callers find what is due by asking again.
    async fn wait_due(&self, agents: &[AgentId], timeout: Duration) {
        let _ = agents;
        tokio::time::sleep(timeout).await;
    }

    /// Extends a lease to `ttl` from now, and returns the last message sent to the session. A lease
    /// that has expired can still be renewed if no other claim has come since.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] if another claim has come since, or the lease was released;
    /// [`StoreError::Gone`] if the session was removed.
    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<InboxSeq, StoreError>;

    /// Frees a lease at once. `read` is the last message that the holder has read, and the answer
    /// says whether the inbox has more. The store keeps the greatest `read` of a session: messages up
    /// to there do not make it [due](Self::claim_due).
    ///
    /// No message is overlooked: each message is either counted in the answer, or its sender finds
    /// the lease free after [`send`](Self::send) has returned.
    ///
    /// # Errors
    /// As [`renew`](Self::renew).
    async fn release(&self, lease: &Lease, read: InboxSeq) -> Result<Released, StoreError>;

    /// Appends a batch to the log of the lease's session: its entries, its summary and its changes
    /// of the open interrupts, all of them or none.
    ///
    /// - *Compare and append*: `batch.after` must be the head of the log.
    /// - *Fenced*: the lease's token must be that of the last claim. Expiry does not matter.
    /// - *Idempotent*: if the same batch was appended before, under the same token, the answer is
    ///   success with the seq of its last entry as head, and nothing changes. Repetition is checked
    ///   before the fence and before the head. A batch without entries takes no seq: it counts as a
    ///   repetition while it is the last batch of its token. Batches that were pruned or removed are
    ///   not recognized.
    /// - *Durable*: with `batch.flush`, this batch and all batches before it survive a loss of power
    ///   on return, if the store promises that. Without `flush` they survive the end of this
    ///   process, if the store promises that.
    ///
    /// A batch may have no entries; it then changes the summary and the interrupts, and flushes. The
    /// first batch of a session must have an entry and a summary. [`rules::judge_append`] makes these
    /// decisions.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] with the head, [`StoreError::Fenced`] (checked before a conflict),
    /// [`StoreError::Gone`], [`StoreError::TooLarge`] and [`StoreError::Full`] if nothing was
    /// appended; [`StoreError::Unavailable`] says whether that is certain.
    async fn append(&self, lease: &Lease, batch: Batch<'_>) -> Result<Appended, StoreError>;

    /// Adds messages to the inbox of a session. Needs no lease. The first message under a key stays,
    /// and either all of `messages` are kept or none.
    ///
    /// A message whose key is taken by one with the same digest counts as sent. If the digests
    /// differ, nothing is sent and the answer is [`Sent::Taken`]; this holds between the messages of
    /// one call, too. The answer is [`Sent::TooLate`] if a new message answers an interrupt that is
    /// not open or has expired by the store's clock, and also if a message
    /// [reports the expiry](Message::expiry) of an interrupt that is not open or has not expired.
    /// `Taken` is checked first, over all messages. An empty list is always accepted.
    /// [`rules::judge_messages`] makes these decisions.
    ///
    /// A message survives what a flushed batch survives.
    ///
    /// # Errors
    /// [`StoreError::Gone`] if the session does not exist; [`StoreError::Corrupt`] and
    /// [`StoreError::NewerFormat`] as for [`claim`](Self::claim).
    async fn send(&self, to: &SessionId, messages: &[Message]) -> Result<Sent, StoreError>;

    /// Reads a part of a session, as the request says. `None` if the session does not exist. Needs
    /// no lease.
    ///
    /// A page begins exactly at the requested entry, which may be inside a batch, and ends where a
    /// batch ends: it holds the rest of that batch, then as many batches as fit into
    /// [`limit`](ReadRequest::limit) bytes of entries; [`Page::next`] is the start of the next page.
    /// Messages are not paged. The page includes everything that was appended or sent before the
    /// call began.
    ///
    /// # Errors
    /// [`StoreError::Pruned`] if the requested entry lies below the first entry kept;
    /// [`StoreError::Corrupt`] if the stored bytes are not the appended bytes;
    /// [`StoreError::NewerFormat`] if a newer version has written them.
    async fn read(
        &self,
        session: &SessionId,
        request: ReadRequest,
    ) -> Result<Option<Page>, StoreError>;

    /// Lists sessions, or open interrupts, in the order of their [keys](Row::key): the rows after the
    /// key `after`, whose row need not exist any more, and at most `limit` of them (at least 1).
    /// [`Listing::next`] is the key of the page's last row.
    ///
    /// Sessions that appear or disappear between pages may be missing; each other session is listed
    /// once. A session with a damaged log hides no other session.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the store does not answer, and [`StoreError::Corrupt`] if an
    /// index of its own is damaged.
    async fn list(
        &self,
        filter: &Filter,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Listing, StoreError>;

    /// Removes the entries of a session below a seq, or the whole session with its inbox and its
    /// lease.
    ///
    /// Entries are removed only below the last snapshot, whatever the seq; without a snapshot, none
    /// are. A removed session can be created again under the same id: it has no messages, interrupts
    /// or summary, and leases of the removed one are fenced.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] if the lease is no longer held; [`StoreError::Gone`] if the session
    /// was removed.
    async fn remove(&self, lease: &Lease, what: Remove) -> Result<(), StoreError>;
}
