//! What is appended, and what is removed.

use crate::clock::UtcMillis;
use crate::id::{InterruptId, Seq};

use super::message::InboxSeq;
use super::summary::{OpenInterrupt, SessionSummary};

/// What one append writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch<'a> {
    /// The head of the log as the writer knows it; 0 for a new session.
    pub after: Seq,
    /// The writer's time, for listings.
    pub at: UtcMillis,
    /// The entries. They get the seqs after `after`.
    pub entries: &'a [NewEntry<'a>],
    /// The new summary of the session; `None` leaves it unchanged.
    pub summary: Option<&'a SessionSummary>,
    /// Interrupts to open. One that is open already is replaced.
    pub open: &'a [OpenInterrupt],
    /// Interrupts to close, after `open` was applied. Those that are not open are ignored.
    pub close: &'a [InterruptId],
    /// Whether this batch and all before it must survive a loss of power on return.
    pub flush: bool,
}

/// One entry to append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewEntry<'a> {
    /// The entry, opaque to the store.
    pub bytes: &'a [u8],
    /// Whether a reader can start here.
    pub snapshot: bool,
}

/// An acknowledged append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Appended {
    /// The seq of the batch's last entry.
    pub head: Seq,
    /// The last message sent to the session.
    pub inbox: InboxSeq,
}

impl Appended {
    /// An append whose last entry is `head`.
    #[must_use]
    pub fn new(head: Seq, inbox: InboxSeq) -> Self {
        Self { head, inbox }
    }
}

/// What to remove of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remove {
    /// The entries below this seq, as far as the last snapshot.
    Below(Seq),
    /// The whole session.
    All,
}
