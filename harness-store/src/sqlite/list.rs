//! Lists of sessions and of open interrupts, a page at a time, by an index.

use harness::SessionId;
use harness::store::{Filter, Listing, Row};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::sql::{apart, phase_number};

use super::batch::id_of;
use super::error::Fault;
use super::row::{COLUMNS, Session, interrupts};

/// Sessions after an id, in order: those with a damaged row are left out.
struct Sessions<'a> {
    conn: &'a Connection,
    filter: &'a Filter,
    after: Option<Vec<u8>>,
    /// Whether the session of `after` itself comes first.
    including: bool,
    found: std::vec::IntoIter<Session>,
    chunk: usize,
    ended: bool,
}

impl Sessions<'_> {
    fn next(&mut self) -> Result<Option<Session>, Fault> {
        loop {
            if let Some(session) = self.found.next() {
                return Ok(Some(session));
            }
            if self.ended {
                return Ok(None);
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> Result<(), Fault> {
        let mut text = format!("SELECT {COLUMNS}, id FROM session WHERE ");
        text += if self.filter.interrupts { "open > 0" } else { "head > 0" };
        let mut values = Vec::new();
        let mut with = |condition: &str, value: Value| {
            text += condition;
            values.push(value);
        };
        if let Some(agent) = &self.filter.agent {
            with(" AND agent = ?", Value::Blob(agent.as_str().as_bytes().to_vec()));
        }
        if let Some(phase) = self.filter.phase {
            with(" AND phase = ?", Value::Integer(phase_number(phase)?.into()));
        }
        if let Some(after) = self.after.take() {
            with(if self.including { " AND id >= ?" } else { " AND id > ?" }, Value::Blob(after));
        }
        let chunk = i64::try_from(self.chunk).unwrap_or(i64::MAX);
        with(" ORDER BY id LIMIT ?", Value::Integer(chunk));
        let mut select = self.conn.prepare_cached(&text)?;
        let mut rows = select.query(params_from_iter(values))?;
        let (mut found, mut count) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            count += 1;
            let bytes: Vec<u8> = row.get(19)?;
            let session = id_of(&bytes).map(|id| Session::read(row, id));
            self.after = Some(bytes);
            match session {
                Some(Ok(session)) => found.push(session),
                Some(Err(Fault::Sql(error))) => return Err(error.into()),
                // It hides no other. A call that opens it reports what is wrong with it.
                Some(Err(Fault::Refused(error))) => {
                    tracing::warn!(%error, "a session is not listed")
                }
                None => tracing::warn!("a session is not listed: its id is damaged"),
            }
        }
        (self.including, self.ended) = (false, count < self.chunk);
        self.found = found.into_iter();
        Ok(())
    }
}

pub(crate) fn list(
    conn: &Connection,
    filter: &Filter,
    after: Option<&[u8]>,
    limit: u32,
) -> Result<Listing, Fault> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX).max(1);
    let (id, interrupt) = after.map(apart).unzip();
    let interrupt = interrupt.flatten();
    let mut sessions = Sessions {
        conn,
        filter,
        after: id.clone(),
        including: filter.interrupts,
        found: Vec::new().into_iter(),
        chunk: limit.saturating_add(1).min(1_000),
        ended: false,
    };
    let mut rows = Vec::new();
    while rows.len() <= limit {
        let Some(session) = sessions.next()? else { break };
        let Some(row) = row(&session) else { continue };
        if !filter.interrupts {
            rows.push(row);
            continue;
        }
        let is_first = id.as_deref() == Some(session.id.as_str().as_bytes());
        let wanted = i64::try_from(limit + 1 - rows.len()).unwrap_or(i64::MAX);
        let seen = interrupt.filter(|_| is_first);
        match interrupts(conn, &session, seen, wanted) {
            Ok(open) => rows.extend(open.into_iter().map(|open| {
                let mut row = row.clone();
                row.interrupt = Some(open);
                row
            })),
            Err(Fault::Refused(error)) => {
                tracing::warn!(%error, "the interrupts of a session are not listed");
            }
            Err(fault) => return Err(fault),
        }
    }
    let more = rows.len() > limit;
    rows.truncate(limit);
    Ok(Listing::new(rows, more))
}

fn row(session: &Session) -> Option<Row> {
    let (summary, _) = session.summary.clone()?;
    let id: SessionId = session.id.clone();
    let mut row = Row::new(id, summary, harness::Seq(session.head));
    (row.created, row.updated) = (session.created, session.updated);
    Some(row)
}
