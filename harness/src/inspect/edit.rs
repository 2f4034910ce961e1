//! Writing a person's correction into the log of a session at rest.

use std::sync::Arc;

use crate::clock::UtcMillis;
use crate::id::{Seq, SessionId};
use crate::journal::Read;
use crate::session::{Change, Entry, Recorded, ReplayError};
use crate::store::{Batch, Lease, NewEntry, Phase, SessionStore};

use super::error::store_error;
use super::fork::append;
use super::{Kind, Sessions, SessionsError};

/// Appends the changes that `changes` makes of a session at rest and its last entry. Returns the last
/// entry that it appends.
///
/// # Errors
/// The session is held or not at rest; `changes` refuses; the store failed.
pub(crate) async fn edit(
    store: &Arc<dyn SessionStore>,
    session: &SessionId,
    changes: impl FnOnce(&Recorded, Seq) -> Result<Vec<Change>, SessionsError> + Send,
) -> Result<Seq, SessionsError> {
    let sessions = Sessions::shared(Arc::clone(store));
    // Without a claim: the next run of a session that has crashed must learn of its holder.
    at_rest(session, &sessions.read(session).await?)?;
    let lease = sessions.claim(session).await?;
    let written = write(&sessions, &lease, changes).await;
    sessions.release(&lease).await;
    written
}

fn at_rest(session: &SessionId, found: &Read) -> Result<(), SessionsError> {
    let session = || session.clone();
    match (found.recorded.session.phase, &found.holder) {
        (Phase::Running, Some(holder)) => {
            Err(Kind::Busy { session: session(), until: holder.until }.into())
        }
        (Phase::Running, None) => Err(Kind::NotAtRest(session()).into()),
        _ => Ok(()),
    }
}

async fn write(
    sessions: &Sessions,
    lease: &Lease,
    changes: impl FnOnce(&Recorded, Seq) -> Result<Vec<Change>, SessionsError> + Send,
) -> Result<Seq, SessionsError> {
    let id = &lease.session;
    let found = sessions.read(id).await?;
    if found.recorded.session.phase == Phase::Running {
        return Err(Kind::NotAtRest(id.clone()).into());
    }
    let (after, inbox, mut recorded) = (found.head, found.inbox(), found.recorded);
    let changes = changes(&recorded, after)?;
    let mut encoded: Vec<Vec<u8>> = Vec::with_capacity(changes.len());
    for change in changes {
        let entry = Entry::now(change);
        let mut bytes = Vec::new();
        let unwritable = |cause| Kind::Unwritable { session: id.clone(), cause };
        entry.encode(&mut bytes).map_err(unwritable)?;
        encoded.push(bytes);
        let misfit = |cause: ReplayError| Kind::Replay { session: id.clone(), cause };
        recorded.apply(entry).map_err(misfit)?;
    }
    let mut session = recorded.session;
    // Messages that were passed over are in no entry.
    session.inbox = inbox;
    let summary = session.summary(&session.cursor.step);
    let entries: Vec<NewEntry<'_>> =
        encoded.iter().map(|bytes| NewEntry { bytes, snapshot: false }).collect();
    let batch = Batch {
        after,
        at: UtcMillis::now(),
        entries: &entries,
        summary: Some(&summary),
        open: &[],
        close: &[],
        flush: true,
    };
    append(&*sessions.store, lease, batch).await.map_err(store_error)?;
    Ok(Seq(after.0 + entries.len() as u64))
}
