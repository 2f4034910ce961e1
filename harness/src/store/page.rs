//! A part of a session, as it is read.

use crate::clock::UtcMillis;
use crate::id::Seq;

use super::lease::Holder;
use super::message::{InboxSeq, StoredMessage};
use super::summary::{OpenInterrupt, SessionSummary};

/// A part of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// The requested entries, in order and without gaps.
    pub entries: Vec<StoredEntry>,
    /// The start of the next page; `None` if this page reaches the head, and if no entries were
    /// requested.
    pub next: Option<Seq>,
    /// The seq of the first entry kept.
    pub first: Seq,
    /// The seq of the last entry.
    pub head: Seq,
    /// The requested messages, in the order in which they were sent, numbered without gaps.
    pub messages: Vec<StoredMessage>,
    /// The last message sent to the session; 0 if there is none.
    pub inbox: InboxSeq,
    /// The summary as of the head.
    pub summary: SessionSummary,
    /// The open interrupts as of the head, in the order of their ids.
    pub interrupts: Vec<OpenInterrupt>,
    /// The current holder; `None` if a claim would succeed.
    pub holder: Option<Holder>,
    /// The writer's time of the first batch.
    pub created: UtcMillis,
    /// The writer's time of the last batch.
    pub updated: UtcMillis,
    /// Bytes of the log that a crash left incomplete or a loss of power took, and that claims have
    /// set aside. None of them was acknowledged as durable. Pruning removes them from the count.
    pub set_aside: u64,
}

impl Page {
    /// A page of a session that has this summary and head, without entries, messages, interrupts and
    /// holder; a store sets the fields it has.
    #[must_use]
    pub fn new(summary: SessionSummary, head: Seq) -> Self {
        Self {
            entries: Vec::new(),
            next: None,
            first: Seq(1),
            head,
            messages: Vec::new(),
            inbox: InboxSeq(0),
            summary,
            interrupts: Vec::new(),
            holder: None,
            created: UtcMillis::default(),
            updated: UtcMillis::default(),
            set_aside: 0,
        }
    }
}

/// An entry as it was appended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredEntry {
    /// Its number.
    pub seq: Seq,
    /// The entry.
    pub bytes: Vec<u8>,
}

impl StoredEntry {
    /// The entry with this number.
    #[must_use]
    pub fn new(seq: Seq, bytes: impl Into<Vec<u8>>) -> Self {
        Self { seq, bytes: bytes.into() }
    }
}
