//! Leases: claiming, renewing and releasing them, by the clock of the server.

use std::time::Duration;

use harness::id::Fence;
use harness::store::{
    Claimed, FormerHolder, Holder, InboxSeq, Lease, Released, SessionSummary, StoreError, Token,
    rules,
};
use harness::{Seq, SessionId, UtcMillis};
use tokio_postgres::Row;

use crate::sql::corrupt;

use super::batch::{get, seq, token, token_of};
use super::client::Client;
use super::error::unexpected;

/// A time to live in microseconds, of which the sum with any time of the server is a number.
pub(crate) fn micros(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX).min(i64::MAX / 4)
}

/// When a lease expires that the server holds for so long, by the clock of this machine.
fn until(left: i64) -> UtcMillis {
    let left = u64::try_from(left).unwrap_or_default().div_ceil(1_000);
    UtcMillis(UtcMillis::now().0.saturating_add(left))
}

/// The holder of a session whose lease lasts for so long from now on.
pub(crate) fn holder(fence: u64, left: i64) -> Option<Holder> {
    rules::is_held(Some(left), 0, true).then(|| Holder::new(Fence(fence), until(left)))
}

pub(crate) fn summary(
    session: &SessionId,
    head: u64,
    bytes: &[u8],
) -> Result<SessionSummary, StoreError> {
    serde_json::from_slice(bytes)
        .map_err(|error| corrupt(session, head, format!("its summary does not decode: {error}")))
}

/// What it means that the log of a session is not sound after this entry.
pub(crate) fn damaged(session: &SessionId, after: i64) -> StoreError {
    let what = "the next batch is missing, or is not what was written";
    corrupt(session, after.cast_unsigned(), what)
}

pub(crate) async fn claim(
    client: &Client,
    session: &SessionId,
    ttl: Duration,
) -> Result<Claimed, StoreError> {
    let own = Token::random();
    let (id, bytes, ttl) = (session.as_str().as_bytes(), token(own), micros(ttl));
    let rows =
        client.query("SELECT * FROM claim_3($1, $2, $3)", &[&id, &bytes, &ttl], true).await?;
    let row = rows.first().ok_or_else(|| unexpected("no row"))?;
    if let Some(after) = get::<Option<i64>>(row, 0)? {
        return Err(damaged(session, after));
    }
    if let Some(left) = get::<Option<i64>>(row, 1)? {
        return Err(StoreError::Busy { session: session.clone(), until: until(left) });
    }
    claimed(session, own, row)
}

/// A session that was claimed.
pub(crate) fn claimed(session: &SessionId, own: Token, row: &Row) -> Result<Claimed, StoreError> {
    let fence = Fence(get::<i64>(row, 3)?.cast_unsigned());
    let mut claimed = Claimed::new(Lease::new(session.clone(), fence, own));
    claimed.head = Seq(get::<i64>(row, 4)?.cast_unsigned());
    claimed.inbox = InboxSeq(get::<i64>(row, 5)?.cast_unsigned());
    claimed.former = if get(row, 2)? { FormerHolder::Released } else { FormerHolder::Expired };
    if let Some(bytes) = get::<Option<&[u8]>>(row, 6)? {
        claimed.summary = Some(summary(session, claimed.head.0, bytes)?);
    }
    Ok(claimed)
}

/// The inbox of a session whose lease was held; the function has done nothing otherwise.
fn inbox_if_held(rows: &[Row], lease: &Lease) -> Result<InboxSeq, StoreError> {
    let Some(row) = rows.first() else {
        return Err(StoreError::Gone { session: lease.session.clone() });
    };
    let last: Option<&[u8]> = get(row, 0)?;
    rules::check_lease(lease, last.and_then(token_of))?;
    Ok(InboxSeq(get::<i64>(row, 1)?.cast_unsigned()))
}

pub(crate) async fn renew(
    client: &Client,
    lease: &Lease,
    ttl: Duration,
) -> Result<InboxSeq, StoreError> {
    let (id, own) = (lease.session.as_str().as_bytes(), token(lease.token));
    let text = "SELECT * FROM renew_3($1, $2, $3)";
    let rows = client.query(text, &[&id, &own, &micros(ttl)], true).await?;
    inbox_if_held(&rows, lease)
}

pub(crate) async fn release(
    client: &Client,
    lease: &Lease,
    read: InboxSeq,
) -> Result<Released, StoreError> {
    let (id, own) = (lease.session.as_str().as_bytes(), token(lease.token));
    let text = "SELECT * FROM release_3($1, $2, $3)";
    let rows = client.query(text, &[&id, &own, &seq(Seq(read.0))], true).await?;
    Ok(rules::released(read, inbox_if_held(&rows, lease)?))
}
