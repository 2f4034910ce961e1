//! Going along a log, entry by entry.

use std::ops::ControlFlow;

use crate::clock::UtcMillis;
use crate::id::{Seq, SessionId};
use crate::log::{Entry, EntryKind, Replay, ReplayError, Saved};
use crate::store::{Phase, ReadFrom, ReadRequest, SessionStore, StoreError};

use super::open::OpenError;

/// A session right behind one of its entries.
pub(crate) struct Place<'a> {
    pub(crate) seq: Seq,
    pub(crate) at: UtcMillis,
    /// Whether a step's result ends here, whole.
    pub(crate) boundary: bool,
    pub(crate) saved: &'a Saved,
}

/// How far a walk came.
pub(crate) struct Walked {
    /// The last entry that was looked at; 0 if there was none.
    pub(crate) last: Seq,
    /// What the entries up to there add up to.
    pub(crate) saved: Result<Saved, ReplayError>,
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
) -> Result<Option<Walked>, OpenError> {
    let mut replay = Replay::default();
    let mut stray = None;
    loop {
        let Some(page) = store.read(session, ReadRequest::entries(from)).await? else {
            return Ok(None);
        };
        let mut over = false;
        for stored in page.entries {
            let entry = Entry::decode(&stored.bytes)
                .map_err(|error| ReplayError::from(error).at(stored.seq))?;
            let (at, ends) = (entry.at, Ends::of(&entry.kind));
            match replay.take_entry(stored.seq, entry, stored.bytes.len()) {
                // What it follows on was pruned. Only from the next snapshot on does the log add up.
                Err(error) if replay.saved().is_none() && page.first > Seq(1) => {
                    stray.get_or_insert(error);
                    continue;
                }
                taken => taken?,
            }
            if stray.is_some() {
                let session = session.clone();
                return Err(StoreError::Pruned { session, first: stored.seq }.into());
            }
            let Some(saved) = replay.saved() else { continue };
            let boundary = match ends {
                Ends::Here => true,
                Ends::IfClean => is_clean(saved),
                Ends::Not => false,
            };
            if look(Place { seq: stored.seq, at, boundary, saved }).is_break() {
                over = true;
                break;
            }
        }
        match page.next {
            Some(next) if !over => from = ReadFrom::Seq(next),
            _ => {
                if let Some(error) = stray {
                    return Err(error.into());
                }
                let last = replay.head();
                return Ok(Some(Walked { last, saved: replay.finish(), head: page.head }));
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
    fn of(kind: &EntryKind) -> Self {
        match kind {
            EntryKind::Settled(_) | EntryKind::Diverted(_) | EntryKind::Finishing(_) => Self::Here,
            EntryKind::RunStarted(run) if run.start.is_some() => Self::Here,
            // The end of a turn is one with how it settles, or with its last steps.
            EntryKind::Committed(committed) if committed.next.is_some() => Self::Here,
            EntryKind::Snapshot(_) => Self::IfClean,
            _ => Self::Not,
        }
    }
}

/// Whether nothing has happened yet at the position at work.
fn is_clean(saved: &Saved) -> bool {
    saved.phase != Phase::Running
        || saved.cursor.position.0 > 0
            && saved.cursor.attempt == 0
            && saved.recovered == 0
            && saved.questions.is_empty()
            && saved.memory.effects.is_empty()
}
