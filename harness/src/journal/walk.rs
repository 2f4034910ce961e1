//! Walking along a log, entry by entry.

use std::ops::ControlFlow;

use crate::clock::UtcMillis;
use crate::id::{Seq, SessionId};
use crate::session::{Change, Entry, Recorded, Replay, ReplayError, Session};
use crate::store::{Phase, ReadFrom, ReadRequest, SessionStore, StoreError};

use super::read::ReadError;

/// A session right behind one of its entries.
pub(crate) struct Place<'a> {
    pub(crate) seq: Seq,
    pub(crate) at: UtcMillis,
    /// Whether a step's result ends here, whole.
    pub(crate) boundary: bool,
    pub(crate) recorded: &'a Recorded,
}

/// How far a walk came.
pub(crate) struct Walked {
    /// The last entry that was looked at; 0 if there was none.
    pub(crate) last: Seq,
    /// The session as of that entry.
    pub(crate) recorded: Result<Recorded, ReplayError>,
    /// The last entry of the log.
    pub(crate) head: Seq,
}

/// Shows every place of a session's log from `from` on, until `look` breaks. `None` if there is no
/// such session.
///
/// # Errors
/// The store failed, the log does not add up, or what the entries from there on follow on was
/// pruned.
pub(crate) async fn walk(
    store: &dyn SessionStore,
    session: &SessionId,
    mut from: ReadFrom,
    mut look: impl FnMut(Place<'_>) -> ControlFlow<()>,
) -> Result<Option<Walked>, ReadError> {
    let mut replay = Replay::default();
    let mut orphan = None;
    loop {
        let Some(page) = store.read(session, ReadRequest::entries(from)).await? else {
            return Ok(None);
        };
        let mut over = false;
        for stored in page.entries {
            let entry = Entry::decode(&stored.bytes)
                .map_err(|error| ReplayError::from(error).at(stored.seq))?;
            let (at, ends) = (entry.at, Ends::of(&entry.change));
            match replay.push_entry(stored.seq, entry, stored.bytes.len()) {
                // What it follows on was pruned. Only from the next snapshot on does the log add up.
                Err(error) if replay.recorded().is_none() && page.first > Seq(1) => {
                    orphan.get_or_insert(error);
                    continue;
                }
                taken => taken?,
            }
            if orphan.is_some() {
                let session = session.clone();
                return Err(StoreError::Pruned { session, first: stored.seq }.into());
            }
            let Some(recorded) = replay.recorded() else { continue };
            let boundary = match ends {
                Ends::Here => true,
                Ends::IfClean => is_clean(&recorded.session),
                Ends::Not => false,
            };
            if look(Place { seq: stored.seq, at, boundary, recorded }).is_break() {
                over = true;
                break;
            }
        }
        match page.next {
            Some(next) if !over => from = ReadFrom::Seq(next),
            _ => {
                if let Some(error) = orphan {
                    return Err(error.into());
                }
                let last = replay.head();
                return Ok(Some(Walked { last, recorded: replay.finish(), head: page.head }));
            }
        }
    }
}

/// Whether what belongs together ends with an entry.
enum Ends {
    Here,
    Not,
    IfClean,
}

impl Ends {
    fn of(change: &Change) -> Self {
        match change {
            Change::Settled(_) | Change::Diverted(_) | Change::Finishing(_) | Change::Edited(_) => {
                Self::Here
            }
            Change::RunStarted(run) if run.start.is_some() => Self::Here,
            // The end of a turn is one with how it settles, or with its last steps.
            Change::Committed(committed) if committed.next.is_some() => Self::Here,
            Change::Snapshot(_) => Self::IfClean,
            _ => Self::Not,
        }
    }
}

/// Whether nothing has happened yet at the position at work.
fn is_clean(session: &Session) -> bool {
    session.phase != Phase::Running
        || session.cursor.position.0 > 0
            && session.cursor.attempt == 0
            && session.recovered == 0
            && session.interrupts.is_empty()
            && session.effects.is_empty()
            && session.items.is_none()
}
