//! The row of a session: everything that is kept of it but its entries, messages and interrupts.

use harness::store::{InboxSeq, OpenInterrupt, SessionSummary, StoreError, Token, rules};
use harness::{InterruptId, Seq, SessionId, UtcMillis};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::sql::{corrupt, phase_number};

use super::error::Fault;

/// The row of a session.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) key: i64,
    pub(crate) made: i64,
    pub(crate) fence: u64,
    pub(crate) token: Option<Token>,
    pub(crate) owner: u64,
    pub(crate) until: u64,
    pub(crate) bare: bool,
    pub(crate) head: u64,
    pub(crate) first: u64,
    pub(crate) snapshot: u64,
    pub(crate) inbox: u64,
    pub(crate) created: UtcMillis,
    pub(crate) updated: UtcMillis,
    pub(crate) open: u64,
    pub(crate) summary: Option<(SessionSummary, Vec<u8>)>,
    /// The last message that a holder had read when it released the session.
    pub(crate) read: u64,
}

/// The columns that a session is read from.
pub(crate) const COLUMNS: &str = "key, made, fence, token, owner, until, bare, head, first, \
     snapshot, inbox, created, updated, open, agent, phase, summary, sum, read";

/// A number of 64 bits, of which the database knows the signed form.
pub(crate) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::cast_unsigned)
}

/// The bytes of a token.
pub(crate) fn bytes(token: Token) -> [u8; 16] {
    token.as_u128().to_be_bytes()
}

fn optional<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<Option<&'a [u8]>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Blob(bytes) | ValueRef::Text(bytes) => Some(bytes),
        _ => None,
    })
}

impl Session {
    /// A session that is about to be claimed for the first time.
    pub(crate) fn new(id: SessionId) -> Self {
        let made = Token::random().as_u128() as i64;
        let never = UtcMillis::default();
        let (fence, token, owner, until, bare) = (0, None, 0, 0, false);
        let (head, first, snapshot, inbox, open) = (0, 1, 0, 0, 0);
        let (created, updated, summary, read) = (never, never, None, 0);
        Self {
            id,
            key: 0,
            made,
            fence,
            token,
            owner,
            until,
            bare,
            head,
            first,
            snapshot,
            inbox,
            created,
            updated,
            open,
            summary,
            read,
        }
    }

    pub(crate) fn exists(&self) -> bool {
        self.head > 0
    }

    /// From when on the session is due, if its lease is free.
    pub(crate) fn due_from(&self) -> Option<UtcMillis> {
        let (summary, _) = self.summary.as_ref()?;
        let due = rules::due_from(summary, InboxSeq(self.read), InboxSeq(self.inbox))?;
        Some(due.min(UtcMillis(i64::MAX.cast_unsigned())))
    }

    /// The row of a session, if there is one.
    pub(crate) fn find(conn: &Connection, id: &SessionId) -> Result<Option<Self>, Fault> {
        let mut select =
            conn.prepare_cached(&format!("SELECT {COLUMNS} FROM session WHERE id = ?"))?;
        let found = select
            .query_row([id.as_str().as_bytes()], |row| Ok(Self::read(row, id.clone())))
            .optional()?;
        found.transpose()
    }

    /// Reads a row that has [`COLUMNS`].
    pub(crate) fn read(row: &Row<'_>, id: SessionId) -> Result<Self, Fault> {
        let token = optional(row, 3)?.map(<[u8; 16]>::try_from).transpose();
        let Ok(token) = token else {
            return Err(corrupt(&id, 0, "the token of its lease is not one").into());
        };
        let mut session = Self {
            key: row.get(0)?,
            made: row.get(1)?,
            fence: number(row, 2)?,
            token: token.map(|token| Token::from_u128(u128::from_be_bytes(token))),
            owner: number(row, 4)?,
            until: number(row, 5)?,
            bare: row.get::<_, i64>(6)? != 0,
            head: number(row, 7)?,
            first: number(row, 8)?,
            snapshot: number(row, 9)?,
            inbox: number(row, 10)?,
            created: UtcMillis(number(row, 11)?),
            updated: UtcMillis(number(row, 12)?),
            open: number(row, 13)?,
            summary: None,
            read: number(row, 18)?,
            id,
        };
        let wrong = |what: &str| Fault::from(corrupt(&session.id, 0, what));
        let (agent, phase) = (optional(row, 14)?, row.get::<_, Option<i64>>(15)?);
        let summary = optional(row, 16)?;
        if u64::from(session.sum(agent, phase, summary)) != number(row, 17)? {
            return Err(wrong("its row is not what was written: its checksum differs"));
        }
        if let Some(bytes) = summary {
            let summary =
                serde_json::from_slice(bytes).map_err(|_| wrong("its summary is not one"))?;
            session.summary = Some((summary, bytes.to_vec()));
        }
        Ok(session)
    }

    fn sum(&self, agent: Option<&[u8]>, phase: Option<i64>, summary: Option<&[u8]>) -> u32 {
        let mut sum = crc32fast::Hasher::new();
        sum.update(self.id.as_str().as_bytes());
        let (key, made) = (self.key.cast_unsigned(), self.made.cast_unsigned());
        let (created, updated) = (self.created.0, self.updated.0);
        let phase = phase.unwrap_or_default().cast_unsigned();
        let bare = u64::from(self.bare);
        let numbers = [key, made, bare, self.head, self.first, self.snapshot, self.inbox];
        for number in numbers.into_iter().chain([created, updated, self.open, phase]) {
            sum.update(&number.to_le_bytes());
        }
        for part in [agent, summary].into_iter().flatten() {
            sum.update(part);
        }
        sum.finalize()
    }

    /// Makes the row of a new session.
    pub(crate) fn insert(&mut self, conn: &Connection) -> Result<(), Fault> {
        conn.prepare_cached(
            "INSERT INTO session (id, made, fence, owner, until, bare, head, first, snapshot, \
             inbox, created, updated, open, sum) VALUES (?, ?, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)",
        )?
        .execute(params![self.id.as_str().as_bytes(), self.made])?;
        self.key = conn.last_insert_rowid();
        if self.key >= 1 << 31 {
            return Err(StoreError::Full(
                "it has had 2,147,483,647 sessions (begin another)".into(),
            )
            .into());
        }
        Ok(())
    }

    /// Writes the row, which was read in this transaction as `before`.
    pub(crate) fn update(&self, conn: &Connection, before: Option<&Self>) -> Result<(), Fault> {
        let columns = |session: &Self| match &session.summary {
            Some((summary, _)) => {
                let agent = summary.agent.as_str().as_bytes().to_vec();
                Ok::<_, StoreError>((Some(agent), Some(i64::from(phase_number(summary.phase)?))))
            }
            None => Ok((None, None)),
        };
        let (agent, phase) = columns(self)?;
        let summary = self.summary.as_ref().map(|(_, bytes)| bytes.as_slice());
        conn.prepare_cached(
            "UPDATE session SET fence = ?, token = ?, owner = ?, until = ?, bare = ?, head = ?, \
             first = ?, snapshot = ?, inbox = ?, created = ?, updated = ?, summary = ?, sum = ? \
             WHERE key = ?",
        )?
        .execute(params![
            self.fence.cast_signed(),
            self.token.map(bytes),
            self.owner.cast_signed(),
            self.until.cast_signed(),
            self.bare,
            self.head.cast_signed(),
            self.first.cast_signed(),
            self.snapshot.cast_signed(),
            self.inbox.cast_signed(),
            self.created.0.cast_signed(),
            self.updated.0.cast_signed(),
            summary,
            self.sum(agent.as_deref(), phase, summary),
            self.key,
        ])?;
        // What has an index is written only when it changes.
        let had = before.map(columns).transpose()?.unwrap_or_default();
        if had != (agent.clone(), phase) {
            conn.prepare_cached("UPDATE session SET agent = ?, phase = ? WHERE key = ?")?
                .execute(params![agent, phase, self.key])?;
        }
        let due = self.due_from();
        if before.and_then(Self::due_from) != due {
            conn.prepare_cached("UPDATE session SET due = ? WHERE key = ?")?
                .execute(params![due.map(|due| due.0.cast_signed()), self.key])?;
        }
        if before.map_or(0, |before| before.read) != self.read {
            conn.prepare_cached("UPDATE session SET read = ? WHERE key = ?")?
                .execute(params![self.read.cast_signed(), self.key])?;
        }
        if before.map_or(0, |before| before.open) != self.open {
            conn.prepare_cached("UPDATE session SET open = ? WHERE key = ?")?
                .execute(params![self.open.cast_signed(), self.key])?;
        }
        Ok(())
    }
}

fn interrupt_sum(session: &Session, open: &OpenInterrupt) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&session.made.to_le_bytes());
    sum.update(open.id.as_str().as_bytes());
    sum.update(&open.since.0.to_le_bytes());
    if let Some(expires) = open.expires {
        sum.update(&expires.0.to_le_bytes());
    }
    sum.finalize()
}

/// Opens an interrupt, or replaces it. Says whether it is a new one.
pub(crate) fn open(
    conn: &Connection,
    session: &Session,
    open: &OpenInterrupt,
) -> Result<bool, Fault> {
    let expires = open.expires.map(|at| at.0.cast_signed());
    let (id, since) = (open.id.as_str().as_bytes(), open.since.0.cast_signed());
    let sum = interrupt_sum(session, open);
    let new = conn
        .prepare_cached("INSERT OR IGNORE INTO interrupt VALUES (?, ?, ?, ?, ?)")?
        .execute(params![session.key, id, since, expires, sum])?;
    if new == 0 {
        conn.prepare_cached(
            "UPDATE interrupt SET since = ?, expires = ?, sum = ? WHERE session = ? AND id = ?",
        )?
        .execute(params![since, expires, sum, session.key, id])?;
    }
    Ok(new > 0)
}

/// Closes an interrupt. Says whether it was open.
pub(crate) fn close(conn: &Connection, session: &Session, id: &InterruptId) -> Result<bool, Fault> {
    let closed = conn
        .prepare_cached("DELETE FROM interrupt WHERE session = ? AND id = ?")?
        .execute(params![session.key, id.as_str().as_bytes()])?;
    Ok(closed > 0)
}

/// One open interrupt.
pub(crate) fn interrupt(
    conn: &Connection,
    session: &Session,
    id: &InterruptId,
) -> Result<Option<OpenInterrupt>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT id, since, expires, sum FROM interrupt WHERE session = ? AND id = ?",
    )?;
    let found = select
        .query_row(params![session.key, id.as_str().as_bytes()], |row| {
            Ok(read_interrupt(row, session))
        })
        .optional()?;
    found.transpose()
}

/// The open interrupts of a session after one, or from the first on, in the order of their ids.
pub(crate) fn interrupts(
    conn: &Connection,
    session: &Session,
    after: Option<&[u8]>,
    limit: i64,
) -> Result<Vec<OpenInterrupt>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT id, since, expires, sum FROM interrupt WHERE session = ?1 AND id >= ?2 \
         AND (NOT ?3 OR id > ?2) ORDER BY id LIMIT ?4",
    )?;
    let mut rows =
        select.query(params![session.key, after.unwrap_or_default(), after.is_some(), limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read_interrupt(row, session)?);
    }
    Ok(found)
}

fn read_interrupt(row: &Row<'_>, session: &Session) -> Result<OpenInterrupt, Fault> {
    let damaged = || Fault::from(corrupt(&session.id, session.head, "an open interrupt differs"));
    let id = row.get_ref(0)?.as_blob().map_err(|_| damaged())?;
    let id = InterruptId::new(std::str::from_utf8(id).map_err(|_| damaged())?);
    let mut open = OpenInterrupt::new(id, UtcMillis(number(row, 1)?));
    open.expires = row.get::<_, Option<i64>>(2)?.map(|at| UtcMillis(at.cast_unsigned()));
    match u64::from(interrupt_sum(session, &open)) == number(row, 3)? {
        true => Ok(open),
        false => Err(damaged()),
    }
}

/// The head of a session, `None` if nothing was ever appended to it.
pub(crate) fn head(session: Option<&Session>) -> Option<Seq> {
    session.filter(|session| session.exists()).map(|session| Seq(session.head))
}
