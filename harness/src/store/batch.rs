//! What is appended, and what is removed.

use crate::clock::UtcMillis;
use crate::id::{InterruptId, Seq};

use super::facts::{Facts, OpenQuestion};
use super::letter::Mail;

/// What is appended at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Batch<'a> {
    /// The head of the log as the writer knows it; 0 for a new session.
    pub after: Seq,
    /// The writer's time, for listings.
    pub at: UtcMillis,
    /// The entries, which get the seqs behind `after`.
    pub entries: &'a [NewEntry<'a>],
    /// The session's facts from now on; `None` leaves them as they are.
    pub facts: Option<&'a Facts>,
    /// Questions that are open from now on. One that is open already is replaced.
    pub ask: &'a [OpenQuestion],
    /// Questions that are no longer open, of those that this batch asks too. Those that are not open
    /// anyway are no error.
    pub close: &'a [InterruptId],
    /// Whether this and all before must survive a loss of power on return.
    pub flush: bool,
}

/// One entry on its way into the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewEntry<'a> {
    /// The entry, opaque to the store.
    pub bytes: &'a [u8],
    /// Whether a reader can start here.
    pub snapshot: bool,
}

/// A batch that is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The seq of its last entry.
    pub head: Seq,
    /// How many letters were posted so far.
    pub mail: Mail,
}

/// What to remove of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remove {
    /// The entries below this seq, as far as the last snapshot.
    Below(Seq),
    /// Everything.
    All,
}
