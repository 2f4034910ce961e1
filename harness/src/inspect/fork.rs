//! Forks: a new session that begins with a past state of another.

use std::ops::ControlFlow;
use std::time::Duration;

use crate::clock::UtcMillis;
use crate::id::{Seq, SessionId};
use crate::journal::{ReadError, walk};
use crate::session::{
    AskedInterrupt, Change, End, Entry, EntryError, FORMAT, Opened, Origin, Recorded, Salt,
    Session, Settled, Snapshot, open_in_store,
};
use crate::step::Place;
use crate::store::{
    Batch, InboxSeq, Lease, NewEntry, Phase, ReadFrom, ReadRequest, SessionStore, StoreError,
};

use super::error::{read_error, store_error};
use super::{HOLD, Kind, SessionsError};

/// The waits before the same batch is sent again to a store that failed.
const RESENDS: [Duration; 3] =
    [Duration::from_millis(10), Duration::from_millis(100), Duration::from_millis(500)];

/// Creates the session `to` from `session` as it was after entry `seq`. `may` checks what is forked
/// before anything is written.
///
/// # Errors
/// No commit ends with entry `seq`, or it was pruned; `to` exists; `may` refuses; the store failed.
pub(crate) async fn fork(
    store: &dyn SessionStore,
    session: &SessionId,
    seq: Seq,
    to: &SessionId,
    may: impl FnOnce(&Recorded) -> Result<(), SessionsError> + Send,
) -> Result<(), SessionsError> {
    let source = boundary(store, session, seq).await?;
    may(&source)?;
    let origin = Origin { session: session.clone(), seq };
    let forked = forked(source, origin);
    let open: Vec<_> = forked.session.open_interrupts().map(open_in_store).collect();
    let summary = forked.session.summary(&forked.session.cursor.step);
    let [opened, snapshot] =
        beginning(forked).map_err(|cause| Kind::Unwritable { session: session.clone(), cause })?;
    // A claim creates a session that does not exist.
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
            let batch = Batch {
                after: Seq(0),
                at: UtcMillis::now(),
                entries: &entries,
                summary: Some(&summary),
                open: &open,
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

/// Appends a batch. After a failure the same batch is sent again; the store recognizes it if it has
/// it already.
pub(super) async fn append(
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

/// What the log replays to at a boundary.
async fn boundary(
    store: &dyn SessionStore,
    session: &SessionId,
    seq: Seq,
) -> Result<Recorded, SessionsError> {
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
            // The entries before it were pruned.
            Err(ReadError::Store(StoreError::Pruned { .. })) if from < seq => {
                return Err(not(None));
            }
            Err(error) => return Err(read_error(session, error)),
        };
        if !here {
            let (session, head) = (session.clone(), walked.head);
            return Err(Kind::NoSuchEntry { session, seq, head }.into());
        }
        match (nearest, begin) {
            (Some(nearest), _) if nearest == seq => {
                let recorded = walked.recorded;
                return recorded.map_err(|error| read_error(session, error.into()));
            }
            // The entry before the snapshot at which this began may be a boundary.
            (None, Some(Seq(begin))) if begin > 1 => from = Seq(begin - 1),
            (nearest, _) => return Err(not(nearest)),
        }
    }
}

/// The session as its fork begins.
fn forked(source: Recorded, origin: Origin) -> Recorded {
    let salt = Salt::random();
    let mut session = Session {
        format: FORMAT,
        salt: salt.clone(),
        from: Some(origin),
        // Its parent waits for the source.
        parent: None,
        // Messages are not copied, so none was applied.
        inbox: InboxSeq(0),
        input: None,
        recovered: 0,
        ..*source.session
    };
    if session.phase == Phase::Running {
        // No run advances it, and no run has crashed.
        session.phase = Phase::Stopped;
        let (finally_failure, active_ms) = (None, session.active_ms);
        let (attempt, notify) = (0, false);
        let settled = Settled { end: End::Stopped, finally_failure, active_ms, attempt, notify };
        session.settled = Some(Box::new(settled));
    }
    let renamed = |mut it: AskedInterrupt| {
        let asked = &mut it.interrupt;
        // No attempt has this number: the interrupts of the fork get other ids.
        let place = Place { position: asked.position, item: asked.item, ..Place::default() };
        let (key, schema) = (asked.key.as_deref(), &asked.answer_schema);
        asked.id = salt.interrupt_id(place, key, &asked.name, &asked.question, schema);
        it
    };
    session.interrupts = session.interrupts.into_iter().map(renamed).collect();
    if let Some(parked) = &mut session.parked {
        let interrupts = std::mem::take(&mut parked.interrupts);
        parked.interrupts = interrupts.into_iter().map(renamed).collect();
    }
    Recorded { session: Box::new(session), state: source.state }
}

/// The entries with which the fork begins.
fn beginning(forked: Recorded) -> Result<[Vec<u8>; 2], EntryError> {
    let Recorded { session, state } = forked;
    let opened = Opened {
        format: session.format,
        agent: session.agent.clone(),
        salt: session.salt.clone(),
        graph: session.graph.clone(),
        schema: session.schema.clone(),
        state: state.clone(),
        from: session.from.clone(),
        parent: None,
    };
    let bytes = |change| {
        let mut bytes = Vec::new();
        Entry::now(change).encode(&mut bytes).map(|()| bytes)
    };
    Ok([
        bytes(Change::Opened(Box::new(opened)))?,
        bytes(Change::Snapshot(Box::new(Snapshot { session: *session, state })))?,
    ])
}
