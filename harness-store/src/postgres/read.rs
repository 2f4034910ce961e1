//! Reading a part of a session, as of one moment, in one statement.

use harness::store::{
    InboxSeq, Message, OpenInterrupt, Page, ReadFrom, ReadRequest, StoreError, StoredEntry,
    StoredMessage, rules,
};
use harness::{InterruptId, Seq, SessionId, UtcMillis};
use tokio_postgres::Row;

use crate::sql::corrupt;

use super::batch::{Found, Stored, message_sum, seq, signed};
use super::claim::{holder, summary};
use super::client::Client;

pub(crate) async fn read(
    client: &Client,
    id: &SessionId,
    request: ReadRequest,
) -> Result<Option<Page>, StoreError> {
    let (kind, from) = match request.from {
        None => (0_i16, None),
        Some(ReadFrom::Seq(from)) => (0, Some(seq(from))),
        Some(ReadFrom::Snapshot) => (1, Some(0)),
        Some(ReadFrom::SnapshotBelow(from)) => (2, Some(seq(from))),
    };
    let limit = signed(request.limit.min(1 << 62));
    let after = request.messages_after.map(|after| seq(Seq(after.0)));
    let bytes = id.as_str().as_bytes();
    let text = "SELECT * FROM read_3($1, $2, $3, $4, $5)";
    let rows = client.query(text, &[&bytes, &kind, &from, &limit, &after], false).await?;
    let found = found(&rows)?;
    let Some((session, rest)) = found.split_first() else {
        return Ok(None);
    };
    let head = Seq(session.count(3));
    let stored = session.blob(0).ok_or_else(|| corrupt(id, head.0, "it has no summary"))?;
    let mut page = Page::new(summary(id, head.0, stored)?, head);
    page.first = Seq(session.count(2));
    page.inbox = InboxSeq(session.count(5));
    page.holder = holder(session.count(0), session.number(1).unwrap_or_default());
    (page.created, page.updated) = (UtcMillis(session.count(6)), UtcMillis(session.count(7)));
    let of_kind = |kind| rest.iter().filter(move |row| row.kind == kind);
    if let Some(from) = request.from {
        let snapshot = session.number(4).map(|seq| Seq(seq.cast_unsigned()));
        let begin = rules::first_entry(id, from, page.first, head, |_| snapshot)?;
        entries(id, &mut page, begin, request.limit, of_kind(1))?;
    }
    let mut next = request.messages_after.map_or(page.inbox.0, |after| after.0);
    for row in of_kind(2) {
        let (seq, message) = message(id, head, row)?;
        next += 1;
        if seq.0 != next {
            return Err(corrupt(id, head.0, format!("message {next} is missing")));
        }
        page.messages.push(StoredMessage::new(seq, message));
    }
    if next < page.inbox.0 {
        return Err(corrupt(id, head.0, format!("the messages after {next} are missing")));
    }
    page.interrupts =
        of_kind(3).map(|row| interrupt(id, head, row)).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(page))
}

/// Entries from `from` on to the end of a batch: at least one batch, then as many as fit into
/// `limit` bytes; and the start of the next page.
fn entries<'a>(
    id: &SessionId,
    page: &mut Page,
    from: Seq,
    limit: u64,
    rows: impl Iterator<Item = &'a Found<'a>>,
) -> Result<(), StoreError> {
    let from = from.0.max(page.first.0);
    let (mut expected, mut bytes) = (None, 0);
    for row in rows {
        let (first, last) = (row.count(0), row.count(1));
        let (begins, after) = match expected {
            Some(next) => (first == next, next - 1),
            None => (first <= from && from <= last, from - 1),
        };
        if !begins {
            return Err(corrupt(id, after, "the next batch is missing"));
        }
        let skipped = from.saturating_sub(first);
        if expected.is_some() && bytes + row.count(2) > limit {
            page.next = Some(Seq(first));
            return Ok(());
        }
        let [Some(token), Some(sum), Some(framed)] = [0, 1, 2].map(|place| row.blob(place)) else {
            return Err(corrupt(id, after, "the next batch has no entries"));
        };
        let places = [signed(first), signed(last)];
        let batch = Stored::check(id, after, places, token, sum, framed)?;
        for ((entry, _), seq) in batch.entries.iter().zip(batch.first..).skip(skipped as usize) {
            bytes += entry.len() as u64;
            page.entries.push(StoredEntry::new(Seq(seq), *entry));
        }
        expected = Some(batch.last + 1);
    }
    match expected.unwrap_or(from) {
        next if next <= page.head.0 => Err(corrupt(id, next - 1, "the next batch is missing")),
        _ => Ok(()),
    }
}

pub(crate) fn message(
    id: &SessionId,
    head: Seq,
    row: &Found<'_>,
) -> Result<(InboxSeq, Message), StoreError> {
    let seq = row.count(0);
    let damaged = || corrupt(id, head.0, format!("message {seq} is not what was sent"));
    let message = Message {
        key: row.text(0).ok_or_else(damaged)?,
        digest: row.text(1).ok_or_else(damaged)?,
        interrupt: match row.blob(2) {
            Some(_) => Some(InterruptId::from(&*row.text(2).ok_or_else(damaged)?)),
            None => None,
        },
        expiry: row.number(1) == Some(1),
        body: row.blob(3).ok_or_else(damaged)?.to_vec(),
    };
    if row.blob(4) != Some(&*message_sum(id, &message)) {
        return Err(damaged());
    }
    Ok((InboxSeq(seq), message))
}

pub(crate) fn interrupt(
    id: &SessionId,
    head: Seq,
    row: &Found<'_>,
) -> Result<OpenInterrupt, StoreError> {
    let text = row.text(0).ok_or_else(|| corrupt(id, head.0, "the id of an interrupt"))?;
    let mut open = OpenInterrupt::new(&*text, UtcMillis(row.count(0)));
    open.expires = row.number(1).map(|at| UtcMillis(at.cast_unsigned()));
    Ok(open)
}

/// The rows that a function has answered with.
pub(crate) fn found(rows: &[Row]) -> Result<Vec<Found<'_>>, StoreError> {
    rows.iter().map(Found::new).collect()
}
