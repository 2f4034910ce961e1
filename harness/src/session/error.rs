//! Errors of entries and logs.

use std::fmt;

use crate::id::Seq;
use crate::state::FoldError;
use crate::text::shown;

/// The most bytes that one entry may have.
pub const MAX_ENTRY: usize = 64 << 20;

/// Bytes that do not decode as an entry, or an entry that cannot be encoded. The message contains
/// nothing of the entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EntryError(EntryFault);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EntryFault {
    #[error(
        "the entry was written by a newer version of the library (resume the session with that \
         version)"
    )]
    Newer,
    #[error(
        "the entry is {bytes} bytes long (the limit is {MAX_ENTRY}; keep large data outside the \
         state, and a reference to it inside)"
    )]
    TooLarge { bytes: usize },
    #[error(
        "the entry is nested deeper than {most} lists and maps (store deep data as text, or flat)"
    )]
    TooDeep { most: usize },
    #[error("failed to decode an entry: {what} at byte {at}")]
    Malformed { what: &'static str, at: usize },
}

impl EntryFault {
    /// Omits the message of the error, which may quote the entry.
    pub(super) fn malformed(error: &serde_json::Error) -> Self {
        let what = match error.classify() {
            serde_json::error::Category::Eof => "unexpected end",
            serde_json::error::Category::Syntax => "not JSON of a bounded depth",
            serde_json::error::Category::Data | serde_json::error::Category::Io => {
                "an unexpected value"
            }
        };
        Self::Malformed { what, at: error.column() }
    }
}

impl From<EntryFault> for EntryError {
    fn from(fault: EntryFault) -> Self {
        Self(fault)
    }
}

impl EntryError {
    /// Whether a newer version of this library wrote the entry.
    #[must_use]
    pub fn is_newer(&self) -> bool {
        matches!(self.0, EntryFault::Newer)
    }

    /// Whether the entry has more than [`MAX_ENTRY`] bytes.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        matches!(self.0, EntryFault::TooLarge { .. })
    }

    /// Whether lists and maps are nested too deeply.
    #[must_use]
    pub fn is_too_deep(&self) -> bool {
        matches!(self.0, EntryFault::TooDeep { .. })
    }

    /// Whether the bytes are not an entry.
    #[must_use]
    pub fn is_malformed(&self) -> bool {
        matches!(self.0, EntryFault::Malformed { .. })
    }
}

/// A log that does not replay.
#[derive(Debug)]
pub struct ReplayError {
    seq: Option<Seq>,
    fault: ReplayFault,
}

#[derive(Debug)]
pub(super) enum ReplayFault {
    Entry(EntryError),
    Reserved { kind: String },
    NoBeginning { found: String },
    SecondBeginning,
    Fold(FoldError),
    NotReplayable { field: String },
    UnknownInterrupt { id: String },
    UnknownChild { key: String },
    ResolvedTwice { id: String },
    NoSuchItem { found: String, index: u32 },
    PlannedTwice,
    NotEntered { found: String },
    Gap { expected: Seq },
    Empty,
}

impl ReplayError {
    pub(super) fn new(fault: ReplayFault) -> Self {
        Self { seq: None, fault }
    }

    /// Sets the entry at which replay failed, if it is not set.
    #[must_use]
    pub(crate) fn at(mut self, seq: Seq) -> Self {
        self.seq.get_or_insert(seq);
        self
    }

    /// The entry at which replay failed, if it is known.
    #[must_use]
    pub fn seq(&self) -> Option<Seq> {
        self.seq
    }

    /// Whether a newer version of this library wrote the log.
    #[must_use]
    pub fn is_newer(&self) -> bool {
        match &self.fault {
            ReplayFault::Entry(error) => error.is_newer(),
            ReplayFault::Reserved { .. } => true,
            _ => false,
        }
    }

    /// The field in which a snapshot differs from what the entries before it replay to.
    #[must_use]
    pub fn not_replayable(&self) -> Option<&str> {
        match &self.fault {
            ReplayFault::NotReplayable { field } => Some(field),
            _ => None,
        }
    }
}

impl From<EntryError> for ReplayError {
    fn from(error: EntryError) -> Self {
        Self::new(ReplayFault::Entry(error))
    }
}

impl From<ReplayFault> for ReplayError {
    fn from(fault: ReplayFault) -> Self {
        Self::new(fault)
    }
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seq {
            Some(seq) => write!(f, "failed to replay the log at seq {seq}: ")?,
            None => f.write_str("failed to replay the log: ")?,
        }
        match &self.fault {
            ReplayFault::Entry(_) => f.write_str("failed to read an entry"),
            ReplayFault::Reserved { kind } => write!(
                f,
                "an entry `{kind}` was written by a newer version of the library (resume the session with \
                 that version)"
            ),
            ReplayFault::NoBeginning { found } => {
                write!(f, "expected `open` or `snapshot` at its beginning, found `{found}`")
            }
            ReplayFault::SecondBeginning => f.write_str("it begins a second time"),
            ReplayFault::Fold(_) => f.write_str("an operation does not fit the state"),
            ReplayFault::NotReplayable { field } => write!(
                f,
                "a snapshot differs in `{}` from what the entries before it replay to",
                shown(field)
            ),
            ReplayFault::UnknownInterrupt { id } => {
                write!(f, "it resolves an interrupt `{}` that was not asked", shown(id))
            }
            ReplayFault::UnknownChild { key } => {
                write!(f, "it ends a child `{}` that was not started", shown(key))
            }
            ReplayFault::ResolvedTwice { id } => {
                write!(f, "it resolves the interrupt `{}` a second time", shown(id))
            }
            ReplayFault::NoSuchItem { found, index } => {
                write!(f, "`{found}` names the item {index}, which is done or was not planned")
            }
            ReplayFault::PlannedTwice => f.write_str("it plans the items of a step twice"),
            ReplayFault::NotEntered { found } => {
                write!(f, "expected `run` before the first step, found `{found}`")
            }
            ReplayFault::Gap { expected } => {
                write!(f, "expected the entry {expected} next (read the log in order)")
            }
            ReplayFault::Empty => f.write_str("there is no entry"),
        }
    }
}

impl std::error::Error for ReplayError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.fault {
            ReplayFault::Entry(error) => Some(error),
            ReplayFault::Fold(error) => Some(error),
            _ => None,
        }
    }
}
