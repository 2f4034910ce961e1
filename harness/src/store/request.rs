//! What to read of a session.

use crate::id::Seq;

use super::message::InboxSeq;

/// What to [read](super::SessionStore::read) of a session, beside its summary and its open
/// interrupts, which every page has.
///
/// ```
/// use harness::Seq;
/// use harness::store::{InboxSeq, ReadRequest};
///
/// let request = ReadRequest::from(Seq(7)).limit(4096).with_messages_after(InboxSeq(3));
/// assert_eq!(request.messages_after, Some(InboxSeq(3)));
/// assert_eq!(ReadRequest::summary().from, None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadRequest {
    /// The first entry to read; `None` reads no entries.
    pub from: Option<ReadFrom>,
    /// Reads the messages after this one; `None` reads no messages.
    pub messages_after: Option<InboxSeq>,
    /// The most bytes of entries in the page, but for its first batch, which is always read.
    pub limit: u64,
}

/// The first entry of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    /// This entry; after the head there is nothing to read. 0 means the first entry, unless that was
    /// pruned.
    Seq(Seq),
    /// The last snapshot; the first entry if there is none.
    Snapshot,
    /// The last snapshot at or below this seq; the first entry if there is none. A seq below the
    /// first entry kept is refused as by [`ReadFrom::Seq`].
    SnapshotBelow(Seq),
}

impl ReadRequest {
    /// The limit of a request that sets no other: 4 MiB.
    pub const LIMIT: u64 = 4 << 20;

    /// No entries and no messages: only the summary, the open interrupts, the holder and the head.
    #[must_use]
    pub fn summary() -> Self {
        Self { from: None, messages_after: None, limit: Self::LIMIT }
    }

    /// Entries from this one on.
    #[must_use]
    pub fn from(seq: Seq) -> Self {
        Self::entries(ReadFrom::Seq(seq))
    }

    /// Entries from the last snapshot on.
    #[must_use]
    pub fn from_snapshot() -> Self {
        Self::entries(ReadFrom::Snapshot)
    }

    /// Entries from the last snapshot at or below this seq on.
    #[must_use]
    pub fn from_snapshot_below(seq: Seq) -> Self {
        Self::entries(ReadFrom::SnapshotBelow(seq))
    }

    /// Entries from this place on.
    #[must_use]
    pub fn entries(from: ReadFrom) -> Self {
        Self { from: Some(from), ..Self::summary() }
    }

    /// No entries, and the messages after this one; `InboxSeq(0)` reads all messages.
    #[must_use]
    pub fn messages_after(seq: InboxSeq) -> Self {
        Self::summary().with_messages_after(seq)
    }

    /// Reads the messages after this one, too.
    #[must_use]
    pub fn with_messages_after(mut self, seq: InboxSeq) -> Self {
        self.messages_after = Some(seq);
        self
    }

    /// The most bytes of entries in the page.
    #[must_use]
    pub fn limit(mut self, bytes: u64) -> Self {
        self.limit = bytes;
        self
    }
}
