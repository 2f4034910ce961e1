//! Reading a session in parts.

use crate::clock::UtcMillis;
use crate::id::{Fence, Seq};

use super::facts::{Facts, OpenQuestion};
use super::letter::{Letter, Mail};

/// Where to begin reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// At this entry; behind the head, there is nothing to read. 0 means the first, unless that was
    /// pruned.
    Seq(Seq),
    /// At the last snapshot; at the first entry if there is none.
    Snapshot,
    /// At the last snapshot at or below this seq; at the first entry if there is none. A seq below
    /// what was pruned is refused as it is with [`From::Seq`].
    SnapshotBelow(Seq),
}

/// A part of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Entries, in order and without gaps.
    pub entries: Vec<StoredEntry>,
    /// Where the next page begins; `None` if this one reaches the head.
    pub next: Option<Seq>,
    /// The seq of the first entry kept.
    pub first: Seq,
    /// The seq of the last entry.
    pub head: Seq,
    /// The letters after the mark asked for, in the order in which they were posted, numbered from 1
    /// without gaps.
    pub letters: Vec<StoredLetter>,
    /// How many letters were posted so far.
    pub mail: Mail,
    /// The facts as of the head.
    pub facts: Facts,
    /// The open questions as of the head, in the order of their ids.
    pub questions: Vec<OpenQuestion>,
    /// Who holds the session; `None` if a claim would take it.
    pub holder: Option<Holder>,
    /// The writer's time of the first batch.
    pub created: UtcMillis,
    /// The writer's time of the last batch.
    pub updated: UtcMillis,
    /// Bytes of records in the log that a crash left unfinished or a loss of power took, and that
    /// claims have set aside. Nothing of them was acknowledged as durable. What is removed with the
    /// entries below a seq is no longer counted.
    pub set_aside: u64,
}

/// An entry as it was appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEntry {
    /// Its number.
    pub seq: Seq,
    /// The entry.
    pub bytes: Vec<u8>,
}

/// A letter as it was posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLetter {
    /// Its number.
    pub mail: Mail,
    /// The letter.
    pub letter: Letter,
}

/// Whoever has the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The lease's fence.
    pub fence: Fence,
    /// When it expires, by this machine's clock.
    pub until: UtcMillis,
}
