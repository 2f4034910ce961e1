//! Reading a log, entry by entry.

use serde_json::Value;

use crate::id::Seq;

use super::entry::{Entry, EntryKind};
use super::error::{ReplayError, ReplayFault};
use super::saved::Saved;

/// Follows a log from its beginning, or from a snapshot of it, and knows the state at each entry.
/// Needs nothing of the program that wrote the log.
///
/// ```
/// use harness::Seq;
/// use harness::log::Replay;
///
/// let log = [
///     r#"{"t":1,"open":{"v":1,"agent":"a","salt":"5a17","graph":{"name":"l","wiring":"","steps":{}},
///        "schema":{"version":1,"fields":[]},"state":{"lines":[]}}}"#,
///     r#"{"t":2,"run":{"run":"r","start":"talk"}}"#,
///     r#"{"t":3,"commit":{"o":[{"push":{"p":["lines"],"v":"hi"}}]}}"#,
/// ];
/// let mut replay = Replay::default();
/// for (seq, entry) in (1..).map(Seq).zip(log) {
///     replay.take(seq, entry.as_bytes())?;
/// }
/// assert_eq!(replay.state(), Some(&serde_json::json!({"lines": ["hi"]})));
/// # Ok::<(), harness::log::ReplayError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Replay {
    saved: Option<Saved>,
    head: Seq,
    since: Since,
}

/// What was appended since the last snapshot, or since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Since {
    /// How many entries.
    pub(crate) entries: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
}

impl Replay {
    /// Takes the next entry of the log.
    ///
    /// # Errors
    /// Bytes that are no entry, and one that does not follow on those before. The replay is then
    /// over.
    pub fn take(&mut self, seq: Seq, bytes: &[u8]) -> Result<(), ReplayError> {
        let entry = Entry::decode(bytes)
            .map_err(|error| ReplayError::from(ReplayFault::Entry(error)).at(seq))?;
        self.take_entry(seq, entry, bytes.len())
    }

    /// The same for an entry that was decoded already from so many bytes.
    pub(crate) fn take_entry(
        &mut self,
        seq: Seq,
        entry: Entry,
        bytes: usize,
    ) -> Result<(), ReplayError> {
        let starts_anew = matches!(entry.kind, EntryKind::Snapshot(_) | EntryKind::Opened(_));
        match &mut self.saved {
            Some(_) if seq != self.head.next() => {
                let expected = self.head.next();
                return Err(ReplayError::from(ReplayFault::Gap { expected }).at(seq));
            }
            Some(saved) => saved.apply(entry).map_err(|error| error.at(seq))?,
            None => self.saved = Some(Saved::begin(entry).map_err(|error| error.at(seq))?),
        }
        self.head = seq;
        self.since = match starts_anew {
            true => Since::default(),
            false => Since {
                entries: self.since.entries.saturating_add(1),
                bytes: self.since.bytes.saturating_add(bytes as u64),
            },
        };
        Ok(())
    }

    /// The seq of the last entry taken; 0 before the first.
    #[must_use]
    pub fn head(&self) -> Seq {
        self.head
    }

    /// What was taken since the last snapshot.
    pub(crate) fn since(&self) -> Since {
        self.since
    }

    /// The state so far.
    #[must_use]
    pub fn state(&self) -> Option<&Value> {
        self.saved.as_ref().map(|saved| &saved.state)
    }

    /// What the entries so far add up to.
    pub(crate) fn saved(&self) -> Option<&Saved> {
        self.saved.as_ref()
    }

    /// What the entries add up to.
    ///
    /// # Errors
    /// There was no entry.
    pub(crate) fn finish(self) -> Result<Saved, ReplayError> {
        self.saved.ok_or_else(|| ReplayFault::Empty.into())
    }
}
