//! Lists of sessions and of open interrupts, a page at a time, by an index.

use harness::store::{Filter, Listing, Row, StoreError, rules};
use harness::{Seq, SessionId, UtcMillis};
use redis::{Cmd, Value};

use crate::sql::{apart, phase_number};

use super::claim::summary;
use super::error::unexpected;
use super::inner::Inner;
use super::read::interrupt_of;
use super::reply::Reply;
use super::scripts;

/// The name of the index of a filter.
fn index(filter: &Filter) -> Result<String, StoreError> {
    let base = if filter.interrupts { "open" } else { "all" };
    let phase = filter.phase.map(phase_number).transpose()?;
    Ok(match (filter.agent.as_ref().map(|agent| agent.as_str()), phase) {
        (None, None) => base.into(),
        (Some(agent), None) => format!("{base}:agent:{agent}"),
        (None, Some(phase)) => format!("{base}:phase:{phase}"),
        (Some(agent), Some(phase)) => format!("{base}:both:{phase}:{agent}"),
    })
}

pub(crate) async fn list(
    inner: &Inner,
    filter: &Filter,
    after: Option<&[u8]>,
    limit: u32,
) -> Result<Listing, StoreError> {
    let limit = limit.max(1) as usize;
    let name = index(filter)?;
    let interrupts = filter.interrupts;
    let interrupt = after.and_then(|after| apart(after).1);
    let bound = |kind: u8, key: &[u8]| [&[kind], key].concat();
    let from = match after {
        None => b"-".to_vec(),
        // A session may have interrupts after the key.
        Some(after) if interrupts => bound(b'[', rules::session_part(after)),
        Some(after) => bound(b'(', after),
    };
    let arguments = |command: &mut Cmd| {
        command.arg("").arg(&name).arg(limit + 1).arg(u8::from(interrupts)).arg(&from);
        command.arg(u8::from(interrupt.is_some())).arg(interrupt.unwrap_or_default());
    };
    inner.client.call(&scripts::LIST, arguments, |reply| rows(reply, limit)).await
}

fn rows(reply: Reply<'_>, limit: usize) -> Result<Listing, StoreError> {
    if reply.name() != "rows" {
        return Err(reply.unexpected("no rows"));
    }
    let found = reply.0.get(1..).unwrap_or_default();
    let mut listing = Listing::default();
    for value in found.iter().take(limit) {
        match row(value) {
            Ok(row) => listing.rows.push(row),
            // It hides no other. A call that opens it reports what is wrong with it.
            Err(error) => tracing::warn!(%error, "a session is not listed"),
        }
    }
    if found.len() > limit {
        let last = Reply::new(found.get(limit - 1).unwrap_or(&Value::Nil))?;
        let mut key = last.bytes(0).unwrap_or_default().to_vec();
        if let Some(interrupt) = last.bytes(6) {
            key.extend([0, 1]);
            key.extend(interrupt);
        }
        listing.next = Some(key);
    }
    Ok(listing)
}

fn row(value: &Value) -> Result<Row, StoreError> {
    let row = Reply::new(value)?;
    let damaged = || unexpected("a row that is not one");
    let id = row.text(1).and_then(|id| SessionId::new(id).ok()).ok_or_else(damaged)?;
    let head = row.count(3)?;
    let bytes = row.bytes(2).unwrap_or_default();
    let mut found = Row::new(id.clone(), summary(&id, head, bytes)?, Seq(head));
    (found.created, found.updated) = (UtcMillis(row.count(4)?), UtcMillis(row.count(5)?));
    if let Some(interrupt) = row.text(6) {
        let times = row.text(7).ok_or_else(damaged)?;
        found.interrupt = Some(interrupt_of(interrupt, times).ok_or_else(damaged)?);
    }
    Ok(found)
}
