//! Leases: claiming, renewing and releasing them, by the clock of the server.

use std::time::Duration;

use harness::id::Fence;
use harness::store::{
    Claimed, FormerHolder, Holder, InboxSeq, Lease, Released, SessionSummary, StoreError, Token,
    rules,
};
use harness::{Seq, SessionId, UtcMillis};

use crate::sql::corrupt;

use super::error::damaged;
use super::frame::{MAX_SEQ, micros};
use super::inner::Inner;
use super::reply::Reply;
use super::scripts;

/// When a lease expires that the server holds for so long, by the clock of this machine.
fn until(left: u64) -> UtcMillis {
    UtcMillis(UtcMillis::now().0.saturating_add(left.div_ceil(1_000)))
}

/// The holder of a session whose lease lasts for so long from now on.
pub(crate) fn holder(fence: u64, left: u64) -> Option<Holder> {
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

pub(crate) async fn claim(
    inner: &Inner,
    session: &SessionId,
    ttl: Duration,
) -> Result<Claimed, StoreError> {
    let own = Token::random();
    let read = |reply: Reply<'_>| claimed(session, own, reply);
    let arguments = |command: &mut redis::Cmd| {
        command.arg(own.to_string()).arg(micros(ttl));
    };
    let claimed = inner.client.call_on(&scripts::CLAIM, session, arguments, read).await?;
    inner.known.held(&claimed.lease, Some(claimed.head), ttl);
    Ok(claimed)
}

/// What came of a claim with this token.
pub(crate) fn claimed(
    session: &SessionId,
    own: Token,
    reply: Reply<'_>,
) -> Result<Claimed, StoreError> {
    match reply.name() {
        "claimed" => {
            let fence = Fence(reply.count(1)?);
            let mut claimed = Claimed::new(Lease::new(session.clone(), fence, own));
            claimed.head = Seq(reply.count(2)?);
            claimed.inbox = InboxSeq(reply.count(3)?);
            if let Some(bytes) = reply.bytes(4) {
                claimed.summary = Some(summary(session, claimed.head.0, bytes)?);
            }
            let expired = reply.count(5)? == 1;
            claimed.former = if expired { FormerHolder::Expired } else { FormerHolder::Released };
            Ok(claimed)
        }
        "busy" => Err(StoreError::Busy { session: session.clone(), until: until(reply.count(1)?) }),
        "damaged" => Err(damaged(session, reply.count(1)?)),
        _ => Err(reply.unexpected("no claim")),
    }
}

/// The inbox of a session whose lease was held; the script has done nothing otherwise.
fn inbox_if_held(inner: &Inner, lease: &Lease, reply: Reply<'_>) -> Result<InboxSeq, StoreError> {
    check_held(inner, lease, reply)?;
    Ok(InboxSeq(reply.count(3)?))
}

/// Checks a lease by what a script has found. If the session is gone, or another run has claimed it,
/// nothing more is known of the lease.
pub(crate) fn check_held(inner: &Inner, lease: &Lease, reply: Reply<'_>) -> Result<(), StoreError> {
    let checked = match reply.name() {
        "found" => rules::check_lease(lease, reply.token(2)),
        "gone" => Err(StoreError::Gone { session: lease.session.clone() }),
        _ => Err(reply.unexpected("no lease")),
    };
    checked.map_err(|error| {
        let error = inner.known.explain(lease, reply.number(1).unwrap_or_default(), None, error);
        inner.known.forget(lease);
        error
    })
}

pub(crate) async fn renew(
    inner: &Inner,
    lease: &Lease,
    ttl: Duration,
) -> Result<InboxSeq, StoreError> {
    let arguments = |command: &mut redis::Cmd| {
        command.arg(lease.token.to_string()).arg(micros(ttl));
    };
    let read = |reply: Reply<'_>| inbox_if_held(inner, lease, reply);
    let inbox = inner.client.call_on(&scripts::RENEW, &lease.session, arguments, read).await?;
    inner.known.held(lease, None, ttl);
    Ok(inbox)
}

pub(crate) async fn release(
    inner: &Inner,
    lease: &Lease,
    seen: InboxSeq,
) -> Result<Released, StoreError> {
    let arguments = |command: &mut redis::Cmd| {
        command.arg(lease.token.to_string()).arg(seen.0.min(MAX_SEQ));
    };
    let read = |reply: Reply<'_>| inbox_if_held(inner, lease, reply);
    let inbox = inner.client.call_on(&scripts::RELEASE, &lease.session, arguments, read).await?;
    inner.known.forget(lease);
    Ok(rules::released(seen, inbox))
}
