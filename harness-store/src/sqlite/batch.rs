//! What is kept of a batch with entries: one row.

use harness::store::rules::Outline;
use harness::store::{Batch, OpenInterrupt, SessionSummary, StoreError};
use harness::{InterruptId, Seq, SessionId, UtcMillis};
use rusqlite::{Connection, Row};

use crate::sql::{batch_size, corrupt, encode, frame, unframe};

use super::error::Fault;
use super::row::{Session, number};

/// The most that fits into the lower half of a place.
pub(crate) const MAX_SEQ: u64 = u32::MAX as u64;

/// A batch as it will be written, independent of what its caller has lent.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) outline: Outline,
    pub(crate) at: UtcMillis,
    pub(crate) entries: Vec<u8>,
    /// How many entries from the first to the last snapshot, counting both ends; 0 without one.
    pub(crate) snapshot: u64,
    pub(crate) summary: Option<(SessionSummary, Vec<u8>)>,
    pub(crate) open: Vec<OpenInterrupt>,
    pub(crate) close: Vec<InterruptId>,
}

impl Prepared {
    pub(crate) fn new(batch: &Batch<'_>) -> Result<Self, StoreError> {
        batch_size(batch.entries)?;
        let summary = match batch.summary {
            Some(summary) => Some((summary.clone(), encode(summary)?)),
            None => None,
        };
        let last = batch.entries.iter().rposition(|entry| entry.snapshot);
        Ok(Self {
            outline: Outline::from(batch),
            at: batch.at,
            entries: frame(batch.entries),
            snapshot: last.map_or(0, |at| at as u64 + 1),
            summary,
            open: batch.open.to_vec(),
            close: batch.close.to_vec(),
        })
    }

    /// What distinguishes a batch without entries from another at the same place.
    pub(crate) fn changes(&self) -> Result<Vec<u8>, StoreError> {
        let summary = self.summary.as_ref().map(|(summary, _)| summary);
        encode(&(summary, &self.open, &self.close))
    }
}

/// Where the row of an entry or a message is.
pub(crate) fn place(session: &Session, seq: u64) -> i64 {
    session.key << 32 | seq.min(MAX_SEQ).cast_signed()
}

fn sum(made: i64, first: u64, last: u64, token: &[u8], entries: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    for part in [&made.to_le_bytes()[..], &first.to_le_bytes(), &last.to_le_bytes(), token, entries]
    {
        sum.update(part);
    }
    sum.finalize()
}

/// Writes the row of a batch, instead of an earlier one with the same last entry.
pub(crate) fn put(
    conn: &Connection,
    session: &Session,
    first: u64,
    last: u64,
    token: &[u8],
    snapshot: Option<u64>,
    entries: &[u8],
) -> Result<(), Fault> {
    let mut insert =
        conn.prepare_cached("INSERT OR REPLACE INTO batch VALUES (?, ?, ?, ?, ?, ?)")?;
    insert.execute((
        place(session, last),
        first.cast_signed(),
        token,
        snapshot.map(|seq| place(session, seq)),
        entries,
        sum(session.made, first, last, token, entries),
    ))?;
    Ok(())
}

/// A row of the table of batches, which is sound.
#[derive(Debug)]
pub(crate) struct Stored<'a> {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) token: &'a [u8],
    pub(crate) framed: &'a [u8],
    pub(crate) entries: Vec<(&'a [u8], bool)>,
}

/// The columns that `Stored` is read from.
pub(crate) const COLUMNS: &str = "place, first, token, entries, sum";

impl<'a> Stored<'a> {
    /// `before` is the last sound entry before it.
    pub(crate) fn read(row: &'a Row<'_>, session: &Session, before: u64) -> Result<Self, Fault> {
        let damaged = |what: &str| corrupt(&session.id, before, format!("the next batch {what}"));
        let place = number(row, 0)?.cast_signed();
        let (first, last) = (number(row, 1)?, (place & 0xffff_ffff).cast_unsigned());
        let token = row.get_ref(2)?.as_blob().map_err(|_| damaged("has no token"))?;
        let framed = row.get_ref(3)?.as_blob().map_err(|_| damaged("has no entries"))?;
        if u64::from(sum(session.made, first, last, token, framed)) != number(row, 4)? {
            return Err(damaged("is not what was written: its checksum differs").into());
        }
        let entries = unframe(framed).ok_or_else(|| damaged("is not whole"))?;
        if last.checked_sub(first).is_none_or(|more| more + 1 != entries.len() as u64) {
            return Err(damaged("has another number of entries").into());
        }
        Ok(Self { first, last, token, framed, entries })
    }
}

/// Goes through the batches from the one with entry `from` on, as long as `each` says so. Says
/// whether it came to the last one.
pub(crate) fn walk(
    conn: &Connection,
    session: &Session,
    from: u64,
    mut each: impl FnMut(&Stored<'_>) -> bool,
) -> Result<bool, Fault> {
    if from > session.head {
        return Ok(true);
    }
    let mut select = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM batch WHERE place BETWEEN ? AND ? ORDER BY place"
    ))?;
    let mut rows = select.query((place(session, from), place(session, session.head)))?;
    let mut next = from;
    while let Some(row) = rows.next()? {
        let batch = Stored::read(row, session, next - 1)?;
        let follows = if next == from { batch.first <= from } else { batch.first == next };
        if !follows {
            break;
        }
        next = batch.last + 1;
        if !each(&batch) {
            return Ok(false);
        }
    }
    match next > session.head {
        true => Ok(true),
        false => Err(corrupt(&session.id, next - 1, "the entries after it are missing").into()),
    }
}

/// The last snapshot at or below a seq.
pub(crate) fn snapshot(
    conn: &Connection,
    session: &Session,
    at: Seq,
) -> Result<Option<Seq>, Fault> {
    if at.0 >= session.head {
        return Ok(Some(Seq(session.snapshot)).filter(|seq| seq.0 > 0));
    }
    // The batch that the seq is in may have one, too.
    let mut found = None;
    let inside = at.0.max(session.first);
    walk(conn, session, inside, |batch| {
        let upto = (at.0 + 1).saturating_sub(batch.first) as usize;
        let last = batch.entries.iter().take(upto).rposition(|(_, snapshot)| *snapshot);
        found = last.map(|place| Seq(batch.first + place as u64));
        false
    })?;
    if found.is_some() {
        return Ok(found);
    }
    let mut select = conn.prepare_cached(
        "SELECT max(snapshot) FROM batch WHERE snapshot IS NOT NULL AND snapshot BETWEEN ? AND ?",
    )?;
    let place: Option<i64> =
        select.query_row((place(session, 1), place(session, at.0)), |row| row.get(0))?;
    Ok(place.map(|place| Seq((place & 0xffff_ffff).cast_unsigned())))
}

/// The id of a session in the database.
pub(crate) fn id_of(bytes: &[u8]) -> Option<SessionId> {
    SessionId::new(std::str::from_utf8(bytes).ok()?).ok()
}
