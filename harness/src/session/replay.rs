//! Reading a log, entry by entry.

use serde_json::Value;

use crate::id::Seq;
use crate::state::fold_owned;

use super::change::{Change, Entry};
use super::error::{ReplayError, ReplayFault};
use super::{Session, Snapshot};

/// A session as its log records it: by the names of its steps, with its state as JSON.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recorded {
    /// Large, and passed through many hands.
    pub(crate) session: Box<Session>,
    pub(crate) state: Value,
}

impl Recorded {
    /// What the first entry of a log, or the first that is kept of it, says.
    ///
    /// # Errors
    /// An entry at which no log begins.
    pub(crate) fn begin(entry: Entry) -> Result<Self, ReplayError> {
        let mut recorded = match entry.change {
            Change::Opened(opened) => {
                Self { session: Box::new(Session::opened(&opened)), state: opened.state }
            }
            Change::Snapshot(snapshot) => {
                Self { session: Box::new(snapshot.session), state: snapshot.state }
            }
            other => {
                let found = other.name().to_owned();
                return Err(ReplayFault::NoBeginning { found }.into());
            }
        };
        if let Some(spent) = entry.spent {
            recorded.session.spent += spent;
            recorded.session.total += spent;
        }
        Ok(recorded)
    }

    /// Applies the next entry.
    ///
    /// # Errors
    /// An entry that does not follow on the ones before. Half of it may have been applied then.
    pub(crate) fn apply(&mut self, mut entry: Entry) -> Result<(), ReplayError> {
        if let Change::Snapshot(snapshot) = &mut entry.change {
            self.replace_state(snapshot)?;
        }
        self.session.apply(&entry)?;
        fold_change(&mut self.state, &mut entry.change)
    }

    /// The state of a snapshot must be what the changes before it come to.
    fn replace_state(&mut self, snapshot: &mut Snapshot) -> Result<(), ReplayError> {
        let state = std::mem::take(&mut snapshot.state);
        if !self.session.is_unwritten_fork() {
            let differs = match self.session.schema.difference(&self.state, &state) {
                Some(field) => Some(field.to_owned()),
                None if self.state.is_object() && state.is_object() => None,
                None => (self.state != state).then(|| "state".to_owned()),
            };
            if let Some(field) = differs {
                return Err(ReplayFault::NotReplayable { field }.into());
            }
        }
        self.state = state;
        Ok(())
    }
}

/// Folds what a change does to the state into its JSON.
///
/// # Errors
/// An operation that does not fit the state.
pub(crate) fn fold_change<P: Ord>(
    state: &mut Value,
    change: &mut Change<P>,
) -> Result<(), ReplayError> {
    if let Change::Adopted(adopted) = change {
        if let Some(new) = adopted.state.take() {
            *state = new;
        }
        return Ok(());
    }
    let ops = change.take_ops();
    fold_owned(state, ops).map_err(|error| ReplayFault::Fold(error).into())
}

/// Follows a log from its beginning, or from a snapshot of it, and knows the state at each entry.
/// Needs nothing of the program that wrote the log.
///
/// ```
/// use harness::Seq;
/// use harness::session::Replay;
///
/// let log = [
///     r#"{"t":1,"open":{"v":1,"agent":"a","salt":"5a17","graph":{"name":"l","wiring":"","steps":{}},
///        "schema":{"version":1,"fields":[]},"state":{"lines":[]}}}"#,
///     r#"{"t":2,"run":{"run":"r","start":"talk"}}"#,
///     r#"{"t":3,"commit":{"o":[{"push":{"p":["lines"],"v":"hi"}}]}}"#,
/// ];
/// let mut replay = Replay::default();
/// for (seq, entry) in (1..).map(Seq).zip(log) {
///     replay.push(seq, entry.as_bytes())?;
/// }
/// assert_eq!(replay.state(), Some(&serde_json::json!({"lines": ["hi"]})));
/// # Ok::<(), harness::session::ReplayError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Replay {
    recorded: Option<Recorded>,
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
    /// Applies the next entry of the log.
    ///
    /// # Errors
    /// Bytes that are no entry, and one that does not follow on those before. The replay ends then.
    pub fn push(&mut self, seq: Seq, bytes: &[u8]) -> Result<(), ReplayError> {
        let entry = Entry::decode(bytes)
            .map_err(|error| ReplayError::from(ReplayFault::Entry(error)).at(seq))?;
        self.push_entry(seq, entry, bytes.len())
    }

    /// The same for an entry that was decoded from so many bytes.
    pub(crate) fn push_entry(
        &mut self,
        seq: Seq,
        entry: Entry,
        bytes: usize,
    ) -> Result<(), ReplayError> {
        let starts = matches!(entry.change, Change::Snapshot(_) | Change::Opened(_));
        match &mut self.recorded {
            Some(_) if seq != self.head.next() => {
                let expected = self.head.next();
                return Err(ReplayError::from(ReplayFault::Gap { expected }).at(seq));
            }
            Some(recorded) => recorded.apply(entry).map_err(|error| error.at(seq))?,
            None => self.recorded = Some(Recorded::begin(entry).map_err(|error| error.at(seq))?),
        }
        self.head = seq;
        self.since = match starts {
            true => Since::default(),
            false => Since {
                entries: self.since.entries.saturating_add(1),
                bytes: self.since.bytes.saturating_add(bytes as u64),
            },
        };
        Ok(())
    }

    /// The seq of the last entry applied; 0 before the first.
    #[must_use]
    pub fn head(&self) -> Seq {
        self.head
    }

    /// What was appended since the last snapshot.
    pub(crate) fn since(&self) -> Since {
        self.since
    }

    /// The state as of the last entry.
    #[must_use]
    pub fn state(&self) -> Option<&Value> {
        self.recorded.as_ref().map(|recorded| &recorded.state)
    }

    /// The session as of the last entry.
    pub(crate) fn recorded(&self) -> Option<&Recorded> {
        self.recorded.as_ref()
    }

    /// The session as of the last entry.
    ///
    /// # Errors
    /// There was no entry.
    pub(crate) fn finish(self) -> Result<Recorded, ReplayError> {
        self.recorded.ok_or_else(|| ReplayFault::Empty.into())
    }
}
