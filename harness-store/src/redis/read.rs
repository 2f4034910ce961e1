//! Reading a part of a session, as of one moment.

use harness::store::{
    InboxSeq, OpenInterrupt, Page, ReadFrom, ReadRequest, StoreError, StoredEntry, StoredMessage,
    rules,
};
use harness::{Seq, SessionId, UtcMillis};
use redis::{Cmd, Value};

use crate::sql::corrupt;

use super::claim::{holder, summary};
use super::frame::{MAX_SEQ, Stored, unpack};
use super::inner::Inner;
use super::reply::Reply;
use super::scripts;

pub(crate) async fn read(
    inner: &Inner,
    id: &SessionId,
    request: ReadRequest,
) -> Result<Option<Page>, StoreError> {
    let (kind, from) = match request.from {
        None => ("none", Seq(0)),
        Some(ReadFrom::Seq(from)) => ("seq", from),
        Some(ReadFrom::Snapshot) => ("snapshot", Seq(0)),
        Some(ReadFrom::SnapshotBelow(from)) => ("below", from),
    };
    let after = request.messages_after.map(|after| after.0.min(MAX_SEQ).to_string());
    let arguments = |command: &mut Cmd| {
        command.arg(kind).arg(from.0.min(MAX_SEQ)).arg(request.limit.min(MAX_SEQ));
        command.arg(after.as_deref().unwrap_or_default());
    };
    let read = |reply: Reply<'_>| match reply.name() {
        "page" => page(id, request, reply).map(Some),
        "none" => Ok(None),
        _ => Err(reply.unexpected("no page")),
    };
    inner.client.call_on(&scripts::READ, id, arguments, read).await
}

fn page(id: &SessionId, request: ReadRequest, reply: Reply<'_>) -> Result<Page, StoreError> {
    let head = Seq(reply.count(1)?);
    let stored = reply.bytes(8).ok_or_else(|| corrupt(id, head.0, "it has no summary"))?;
    let mut page = Page::new(summary(id, head.0, stored)?, head);
    page.first = Seq(reply.count(2)?);
    page.holder = holder(reply.count(3)?, reply.count(4)?);
    page.inbox = InboxSeq(reply.count(5)?);
    (page.created, page.updated) = (UtcMillis(reply.count(6)?), UtcMillis(reply.count(7)?));
    if let Some(from) = request.from {
        let snapshot = reply.number(9).map(Seq);
        let begin = rules::first_entry(id, from, page.first, head, |_| snapshot)?;
        entries(id, &mut page, begin, request.limit, reply.list(10)?)?;
    }
    let mut next = request.messages_after.map_or(page.inbox.0, |after| after.0);
    for value in reply.list(11)? {
        next += 1;
        let damaged = || corrupt(id, head.0, format!("message {next} is not what was sent"));
        let Value::BulkString(stored) = value else { return Err(damaged()) };
        let message = unpack(id, stored).ok_or_else(damaged)?;
        page.messages.push(StoredMessage::new(InboxSeq(next), message));
    }
    if next < page.inbox.0 {
        return Err(corrupt(id, head.0, format!("the messages after {next} are missing")));
    }
    let open = Reply(reply.list(12)?);
    for place in (0..open.0.len()).step_by(2) {
        let damaged = || corrupt(id, head.0, "an open interrupt is not one");
        let interrupt = open.text(place).ok_or_else(damaged)?;
        let times = open.text(place + 1).ok_or_else(damaged)?;
        page.interrupts.push(interrupt_of(interrupt, times).ok_or_else(damaged)?);
    }
    page.interrupts.sort_unstable_by(|one, other| one.id.as_str().cmp(other.id.as_str()));
    Ok(page)
}

/// Entries from `from` on to the end of a batch: at least one batch, then as many as fit into
/// `limit` bytes; and the start of the next page.
fn entries(
    id: &SessionId,
    page: &mut Page,
    from: Seq,
    limit: u64,
    batches: &[Value],
) -> Result<(), StoreError> {
    let from = from.0.max(page.first.0);
    let (mut expected, mut bytes) = (None, 0);
    for value in batches {
        let after = expected.map_or(from, |next| next) - 1;
        let row = Reply::new(value)?;
        let place = row.text(0).unwrap_or_default();
        let batch = Stored::check(id, after, place, row.bytes(1))?;
        let begins = match expected {
            Some(next) => batch.first == next,
            None => batch.first <= from && from <= batch.last,
        };
        if !begins {
            return Err(corrupt(id, after, "the next batch is missing"));
        }
        if expected.is_some() && bytes + batch.bytes > limit {
            page.next = Some(Seq(batch.first));
            return Ok(());
        }
        let Some(found) = batch.entries else {
            return Err(corrupt(id, after, "the entries of the next batch are missing"));
        };
        let skipped = usize::try_from(from.saturating_sub(batch.first)).unwrap_or(usize::MAX);
        for ((entry, _), seq) in found.iter().zip(batch.first..).skip(skipped) {
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

/// An interrupt, and when it was opened and expires.
pub(crate) fn interrupt_of(id: &str, times: &str) -> Option<OpenInterrupt> {
    let (since, expires) = times.split_once(':')?;
    let mut open = OpenInterrupt::new(id, UtcMillis(since.parse().ok()?));
    if !expires.is_empty() {
        open.expires = Some(UtcMillis(expires.parse().ok()?));
    }
    Some(open)
}
