//! Removing the beginning of a log, or a whole session.

use harness::Seq;
use harness::store::{Lease, NewEntry, Remove, rules};
use rusqlite::{Connection, params};

use crate::sql::frame;

use super::batch::{self, place, walk};
use super::claim::{forget, held};
use super::error::Fault;
use super::row::Session;
use super::shared::Known;

pub(crate) fn remove(
    conn: &Connection,
    known: &Known,
    lease: &Lease,
    what: Remove,
) -> Result<(), Fault> {
    let session = held(conn, known, lease)?;
    match what {
        Remove::Below(seq) => prune(conn, &session, seq),
        Remove::All => remove_all(conn, &session),
    }
}

fn remove_all(conn: &Connection, session: &Session) -> Result<(), Fault> {
    for table in ["batch", "message"] {
        let delete = format!("DELETE FROM {table} WHERE place BETWEEN ? AND ?");
        let all = (place(session, 0), place(session, u64::MAX));
        conn.prepare_cached(&delete)?.execute(all)?;
    }
    for table in ["bare", "interrupt"] {
        let delete = format!("DELETE FROM {table} WHERE session = ?");
        conn.prepare_cached(&delete)?.execute([session.key])?;
    }
    forget(conn, session)
}

fn prune(conn: &Connection, before: &Session, below: Seq) -> Result<(), Fault> {
    let snapshot = Some(Seq(before.snapshot)).filter(|seq| seq.0 > 0);
    let Some(Seq(first)) = rules::first_kept(below, Seq(before.first), snapshot) else {
        return Ok(());
    };
    conn.prepare_cached("DELETE FROM batch WHERE place BETWEEN ? AND ?")?
        .execute((place(before, 0), place(before, first - 1)))?;
    // A batch of which only a part is kept is written without the rest.
    let mut partial = None;
    walk(conn, before, first, |batch| {
        if batch.first < first {
            let kept = batch.entries.iter().zip(batch.first..).filter(|(_, seq)| *seq >= first);
            let entries: Vec<_> = kept
                .map(|((bytes, snapshot), _)| NewEntry { bytes, snapshot: *snapshot })
                .collect();
            let last = entries.iter().rposition(|entry| entry.snapshot);
            let snapshot = last.map(|at| first + at as u64);
            partial = Some((batch.last, batch.token.to_vec(), snapshot, frame(&entries)));
        }
        false
    })?;
    if let Some((last, token, snapshot, entries)) = partial {
        batch::put(conn, before, first, last, &token, snapshot, &entries)?;
    }
    // A batch after the log's first entry can still be sent again.
    conn.prepare_cached("DELETE FROM bare WHERE session = ? AND after + 1 < ?")?
        .execute(params![before.key, first.cast_signed()])?;
    let mut session = before.clone();
    session.first = first;
    session.update(conn, Some(before))
}
