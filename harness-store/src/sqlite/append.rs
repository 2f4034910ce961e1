//! Appending a batch.

use harness::Seq;
use harness::store::rules::Append;
use harness::store::{Appended, InboxSeq, Lease, StoreError, rules};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::batch::{self, COLUMNS, MAX_SEQ, Prepared, Stored, place};
use super::claim::check;
use super::error::Fault;
use super::row::{self, Session, bytes};
use super::shared::Known;

pub(crate) fn append(
    conn: &Connection,
    known: &Known,
    lease: &Lease,
    new: &Prepared,
) -> Result<Appended, Fault> {
    let found = Session::find(conn, &lease.session)?;
    let repetition = match &found {
        Some(session) => repeats(conn, session, lease, new)?,
        None => false,
    };
    let head = row::head(found.as_ref());
    let held = || check(known, found.as_ref(), lease);
    let judged = rules::judge_append(&lease.session, new.outline, head, repetition, held)?;
    let Some(before) = found else {
        return Err(StoreError::Gone { session: lease.session.clone() }.into());
    };
    let inbox = InboxSeq(before.inbox);
    if let Append::Done(head) = judged {
        return Ok(Appended::new(head, inbox));
    }
    let mut session = before.clone();
    if !session.exists() {
        session.created = new.at;
    }
    session.updated = new.at;
    write_entries(conn, &mut session, lease, new)?;
    if let Some(summary) = &new.summary {
        session.summary = Some(summary.clone());
    }
    for interrupt in &new.open {
        session.open += u64::from(row::open(conn, &session, interrupt)?);
    }
    for id in &new.close {
        session.open -= u64::from(row::close(conn, &session, id)?);
    }
    session.update(conn, Some(&before))?;
    Ok(Appended::new(Seq(session.head), inbox))
}

fn write_entries(
    conn: &Connection,
    session: &mut Session,
    lease: &Lease,
    new: &Prepared,
) -> Result<(), Fault> {
    let token = bytes(lease.token);
    if new.outline.entries == 0 {
        conn.prepare_cached("INSERT OR REPLACE INTO bare VALUES (?, ?, ?, ?)")?.execute(
            params![session.key, token, new.outline.after.0.cast_signed(), new.changes()?],
        )?;
        session.bare = true;
        return Ok(());
    }
    if session.bare {
        conn.prepare_cached("DELETE FROM bare WHERE session = ? AND token = ?")?
            .execute(params![session.key, token])?;
        session.bare = false;
    }
    let (first, last) = (session.head + 1, session.head + new.outline.entries);
    if last > MAX_SEQ {
        return Err(StoreError::Full("a session has at most 4,294,967,295 entries".into()).into());
    }
    let snapshot = (new.snapshot > 0).then(|| session.head + new.snapshot);
    batch::put(conn, session, first, last, &token, snapshot, &new.entries)?;
    session.head = last;
    session.snapshot = snapshot.unwrap_or(session.snapshot);
    Ok(())
}

/// Whether the batch was appended before, under the same token. This is [`rules::is_repetition`], of
/// what the database keeps of batches.
fn repeats(
    conn: &Connection,
    session: &Session,
    lease: &Lease,
    new: &Prepared,
) -> Result<bool, Fault> {
    let (token, after) = (bytes(lease.token), new.outline.after.0);
    if new.outline.entries == 0 {
        let mut select =
            conn.prepare_cached("SELECT after, changes FROM bare WHERE session = ? AND token = ?")?;
        let stored = select
            .query_row(params![session.key, token], |row| {
                Ok((row::number(row, 0)?, row.get::<_, Vec<u8>>(1)?))
            })
            .optional()?;
        return Ok(match stored {
            Some((then, changes)) => then == after && changes == new.changes()?,
            None => false,
        });
    }
    // Nothing is after the head, where nearly every batch begins.
    let last = after.saturating_add(new.outline.entries);
    if last > session.head {
        return Ok(false);
    }
    let mut select =
        conn.prepare_cached(&format!("SELECT {COLUMNS} FROM batch WHERE place = ?"))?;
    let mut rows = select.query([place(session, last)])?;
    let Some(found) = rows.next()? else { return Ok(false) };
    let stored = Stored::read(found, session, after)?;
    Ok(stored.first == after + 1 && stored.token == token && stored.framed == new.entries)
}
