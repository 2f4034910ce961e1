//! Forks: another session that begins where one has been.

use std::ops::ControlFlow;
use std::time::Duration;

use crate::clock::UtcMillis;
use crate::id::{Seq, SessionId};
use crate::journal::{OpenError, walk};
use crate::log::{
    Entry, EntryError, EntryKind, FORMAT, HowSettled, Opened, Origin, Salt, Saved, SavedQuestion,
    Settled, Snapshot,
};
use crate::store::{
    Batch, InboxSeq, Lease, NewEntry, Phase, ReadFrom, ReadRequest, SessionStore, StoreError,
};

use super::error::{open_error, store_error};
use super::{HOLD, Kind, SessionsError};

/// The waits before the same bytes are sent again to a store that failed.
const RESENDS: [Duration; 3] =
    [Duration::from_millis(10), Duration::from_millis(100), Duration::from_millis(500)];

/// Begins the session `to` where `session` was right behind `seq`. `may` looks at what is forked
/// before anything is written.
///
/// # Errors
/// No step's result ends at `seq`, or it is not kept; `to` exists; `may` refuses; the store failed.
pub(crate) async fn fork(
    store: &dyn SessionStore,
    session: &SessionId,
    seq: Seq,
    to: &SessionId,
    may: impl FnOnce(&Saved) -> Result<(), SessionsError> + Send,
) -> Result<(), SessionsError> {
    let source = boundary(store, session, seq).await?;
    may(&source)?;
    let origin = Origin { session: session.clone(), seq };
    let forked = forked(source, origin);
    let (entries, questions) = (beginning(&forked), forked.open_questions());
    let [opened, snapshot] =
        entries.map_err(|source| Kind::Unwritable { session: session.clone(), source })?;
    // A claim makes what it does not find.
    let there = store.read(to, ReadRequest::summary()).await;
    if there.map_err(store_error)?.is_some() {
        return Err(Kind::Exists(to.clone()).into());
    }
    let claimed = store.claim(to, HOLD).await.map_err(store_error)?;
    let lease = claimed.lease;
    let written = match claimed.head {
        Seq(0) => {
            let entries = [
                NewEntry { bytes: &opened, snapshot: false },
                NewEntry { bytes: &snapshot, snapshot: true },
            ];
            let facts = forked.facts();
            let batch = Batch {
                after: Seq(0),
                at: UtcMillis::now(),
                entries: &entries,
                summary: Some(&facts),
                open: &questions,
                close: &[],
                flush: true,
            };
            append(store, &lease, batch).await.map_err(store_error)
        }
        _ => Err(Kind::Exists(to.clone()).into()),
    };
    // It expires by itself if this fails.
    let _ = store.release(&lease, InboxSeq(0)).await;
    written
}

/// Appends a batch; a store that failed is given the same one again, which it knows if it has it.
async fn append(
    store: &dyn SessionStore,
    lease: &Lease,
    batch: Batch<'_>,
) -> Result<(), StoreError> {
    let mut resends = RESENDS.iter();
    loop {
        match (store.append(lease, batch).await, resends.clone().next()) {
            (Err(StoreError::Unavailable { .. }), Some(wait)) => {
                resends.next();
                tokio::time::sleep(*wait).await;
            }
            (appended, _) => return appended.map(|_| ()),
        }
    }
}

/// What the log adds up to at a boundary.
async fn boundary(
    store: &dyn SessionStore,
    session: &SessionId,
    seq: Seq,
) -> Result<Saved, SessionsError> {
    let mut from = seq;
    loop {
        let (mut begin, mut nearest, mut here) = (None, None, false);
        let walked = walk(store, session, ReadFrom::SnapshotBelow(from), |place| {
            begin.get_or_insert(place.seq);
            if place.seq <= seq && place.boundary {
                nearest = Some(place.seq);
            }
            here = place.seq == seq;
            match place.seq < seq {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        });
        let not = |nearest| Kind::NotABoundary { session: session.clone(), seq, nearest }.into();
        let walked = match walked.await {
            Ok(walked) => walked.ok_or_else(|| Kind::NotFound(session.clone()))?,
            // What there was before is gone.
            Err(OpenError::Store(StoreError::Pruned { .. })) if from < seq => {
                return Err(not(None));
            }
            Err(error) => return Err(open_error(session, error)),
        };
        if !here {
            let (session, head) = (session.clone(), walked.head);
            return Err(Kind::NoSuchEntry { session, seq, head }.into());
        }
        match (nearest, begin) {
            (Some(nearest), _) if nearest == seq => {
                let saved = walked.saved.map_err(|error| open_error(session, error.into()))?;
                return Ok(saved);
            }
            // The one before the snapshot at which this began may be one.
            (None, Some(Seq(begin))) if begin > 1 => from = Seq(begin - 1),
            (nearest, _) => return Err(not(nearest)),
        }
    }
}

/// The session as its fork begins.
fn forked(source: Saved, origin: Origin) -> Saved {
    let salt = Salt::random();
    let mut forked = Saved {
        format: FORMAT,
        salt: salt.clone(),
        from: Some(origin),
        // Letters do not come along, so none was taken.
        mail: InboxSeq(0),
        input: None,
        recovered: 0,
        ..source
    };
    if forked.phase == Phase::Running {
        // Nobody advances it, and nobody crashed.
        forked.phase = Phase::Stopped;
        let active_ms = forked.active_ms;
        let settled =
            Settled { how: HowSettled::Stopped, finally_failure: None, active_ms, attempt: 0 };
        forked.settled = Some(Box::new(settled));
    }
    let parked = forked.parked.iter_mut().flat_map(|parked| &mut parked.questions);
    for SavedQuestion { interrupt: asked, .. } in forked.questions.iter_mut().chain(parked) {
        let (key, schema) = (asked.key.as_deref(), &asked.answer_schema);
        // No attempt has this number: what the fork asks gets other ids.
        asked.id = salt.interrupt_id(asked.position, 0, key, &asked.name, &asked.question, schema);
    }
    forked
}

/// The entries with which the fork begins.
fn beginning(forked: &Saved) -> Result<[Vec<u8>; 2], EntryError> {
    let opened = Opened {
        format: forked.format,
        agent: forked.agent.clone(),
        salt: forked.salt.clone(),
        graph: forked.graph.clone(),
        schema: forked.schema.clone(),
        state: forked.state.clone(),
        from: forked.from.clone(),
    };
    let bytes = |kind| {
        let entry = Entry { at: UtcMillis::now(), spent: None, kind };
        let mut bytes = Vec::new();
        entry.encode(&mut bytes).map(|()| bytes)
    };
    Ok([
        bytes(EntryKind::Opened(Box::new(opened)))?,
        bytes(EntryKind::Snapshot(Snapshot(Box::new(forked.clone()))))?,
    ])
}
