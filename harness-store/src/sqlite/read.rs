//! Reading a part of a session.

use harness::store::{InboxSeq, Page, ReadFrom, ReadRequest, StoredEntry, rules};
use harness::{Seq, SessionId};
use rusqlite::Connection;

use crate::sql::corrupt;

use super::batch::{snapshot, walk};
use super::claim::holder;
use super::error::Fault;
use super::row::{Session, interrupts};
use super::send::messages_after;
use super::shared::Known;

pub(crate) fn read(
    conn: &Connection,
    known: &Known,
    id: &SessionId,
    request: ReadRequest,
) -> Result<Option<Page>, Fault> {
    let Some(session) = Session::find(conn, id)?.filter(Session::exists) else {
        return Ok(None);
    };
    let Some((summary, _)) = &session.summary else {
        return Err(corrupt(id, 0, "it has entries and no summary").into());
    };
    let mut page = Page::new(summary.clone(), Seq(session.head));
    page.first = Seq(session.first);
    if let Some(from) = request.from {
        let last = match from {
            ReadFrom::Seq(_) => None,
            ReadFrom::Snapshot => snapshot(conn, &session, page.head)?,
            ReadFrom::SnapshotBelow(seq) => snapshot(conn, &session, seq)?,
        };
        let begin = rules::first_entry(id, from, page.first, page.head, |_| last)?;
        (page.entries, page.next) = entries(conn, &session, begin, request.limit)?;
    }
    if let Some(after) = request.messages_after {
        page.messages = messages_after(conn, &session, after)?;
    }
    page.inbox = InboxSeq(session.inbox);
    page.interrupts = interrupts(conn, &session, None, -1)?;
    if page.interrupts.len() as u64 != session.open {
        return Err(corrupt(id, session.head, "open interrupts are missing").into());
    }
    page.holder = holder(known, &session);
    (page.created, page.updated) = (session.created, session.updated);
    Ok(Some(page))
}

/// Entries from `from` on to the end of a batch: at least one batch, then as many as fit into
/// `limit` bytes; and the start of the next page.
fn entries(
    conn: &Connection,
    session: &Session,
    from: Seq,
    limit: u64,
) -> Result<(Vec<StoredEntry>, Option<Seq>), Fault> {
    let from = from.0.max(session.first);
    let (mut entries, mut bytes, mut next) = (Vec::new(), 0, None);
    walk(conn, session, from, |batch| {
        let skipped = from.saturating_sub(batch.first);
        let wanted = batch.entries.iter().zip(batch.first..).skip(skipped as usize);
        bytes += wanted.clone().map(|((entry, _), _)| entry.len() as u64).sum::<u64>();
        if !entries.is_empty() && bytes > limit {
            next = Some(Seq(batch.first));
            return false;
        }
        entries.extend(wanted.map(|((entry, _), seq)| StoredEntry::new(Seq(seq), *entry)));
        true
    })?;
    Ok((entries, next))
}
