//! Lists of sessions and of open interrupts, a page at a time, by an index.

use harness::store::{Filter, Listing, OpenInterrupt, Row, StoreError};
use harness::{Seq, SessionId, UtcMillis};

use crate::sql::{apart, phase_number};

use super::batch::get;
use super::claim::summary;
use super::client::{Client, Value};

pub(crate) async fn list(
    client: &Client,
    filter: &Filter,
    after: Option<&[u8]>,
    limit: u32,
) -> Result<Listing, StoreError> {
    let limit = limit.max(1) as usize;
    let wanted = limit as i64 + 1;
    let agent = filter.agent.as_ref().map(|agent| agent.as_str().as_bytes());
    let phase = filter.phase.map(phase_number).transpose()?;
    let (id, interrupt) = after.map(apart).unzip();
    let interrupt = interrupt.flatten();
    let mut values: Vec<Value<'_>> = vec![&wanted];
    let mut conditions = String::new();
    let mut with = |condition: &str, value| {
        values.push(value);
        conditions += &condition.replace('?', &format!("${}", values.len()));
    };
    if let Some(agent) = &agent {
        with(" AND s.agent = ?", agent as Value<'_>);
    }
    if let Some(phase) = &phase {
        with(" AND s.phase = ?", phase);
    }
    let text = match (filter.interrupts, &id) {
        (false, id) => {
            if let Some(id) = id {
                with(" AND s.id > ?", id);
            }
            format!(
                "SELECT s.id, s.summary, s.head, s.created, s.updated FROM session s \
                 WHERE s.written{conditions} ORDER BY s.id LIMIT $1"
            )
        }
        (true, id) => {
            let mut seen = String::new();
            if let Some(id) = id {
                with(" AND s.id >= ?", id);
                let place = values.len();
                // Of the session itself those after the interrupt; all, if the key names none.
                if let Some(interrupt) = &interrupt {
                    values.push(interrupt);
                    seen = format!(" AND (s.id > ${place} OR i.id > ${})", values.len());
                }
            }
            format!(
                "SELECT s.id, s.summary, s.head, s.created, s.updated, i.id, i.since, i.expires \
                 FROM session s CROSS JOIN LATERAL (SELECT * FROM interrupt i \
                 WHERE i.session = s.key{seen} ORDER BY i.id LIMIT $1) i \
                 WHERE s.has_open{conditions} ORDER BY s.id, i.id LIMIT $1"
            )
        }
    };
    let rows = client.query(&text, &values, false).await?;
    let mut listed = Vec::new();
    let more = rows.len() > limit;
    for row in rows.iter().take(limit) {
        match read(row, filter.interrupts) {
            Ok(row) => listed.push(row),
            // It hides no other. A call that opens it reports what is wrong with it.
            Err(error) => tracing::warn!(%error, "a session is not listed"),
        }
    }
    let next = match (more, rows.get(limit - 1)) {
        (true, Some(row)) => Some(key(row, filter.interrupts)?),
        _ => None,
    };
    let mut listing = Listing::new(listed, false);
    listing.next = next;
    Ok(listing)
}

/// The key of a row that may be damaged.
fn key(row: &tokio_postgres::Row, interrupts: bool) -> Result<Vec<u8>, StoreError> {
    let mut key = Vec::new();
    for byte in get::<&[u8]>(row, 0)? {
        key.push(*byte);
        if *byte == 0 {
            key.push(255);
        }
    }
    if interrupts {
        key.extend([0, 1]);
        key.extend(get::<&[u8]>(row, 5)?);
    }
    Ok(key)
}

fn read(row: &tokio_postgres::Row, interrupts: bool) -> Result<Row, StoreError> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    let damaged = || super::error::unexpected("an id that is not text");
    let id = text(get(row, 0)?).and_then(|id| SessionId::new(id).ok()).ok_or_else(damaged)?;
    let head = get::<i64>(row, 2)?.cast_unsigned();
    let bytes: Option<&[u8]> = get(row, 1)?;
    let mut found = Row::new(id.clone(), summary(&id, head, bytes.unwrap_or_default())?, Seq(head));
    found.created = UtcMillis(get::<i64>(row, 3)?.cast_unsigned());
    found.updated = UtcMillis(get::<i64>(row, 4)?.cast_unsigned());
    if interrupts {
        let interrupt = text(get(row, 5)?).ok_or_else(damaged)?;
        let since = UtcMillis(get::<i64>(row, 6)?.cast_unsigned());
        let mut open = OpenInterrupt::new(&*interrupt, since);
        open.expires = get::<Option<i64>>(row, 7)?.map(|at| UtcMillis(at.cast_unsigned()));
        found.interrupt = Some(open);
    }
    Ok(found)
}
