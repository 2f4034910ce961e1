//! Leases: claiming, renewing and releasing them.
//!
//! Until when a lease holds is kept by the clock of leases, which no person sets; after a restart of
//! the machine, `liveness` says that its holder is dead.

use std::time::Duration;

use harness::id::Fence;
use harness::store::{
    Claimed, FormerHolder, Holder, InboxSeq, Lease, Released, StoreError, Token, rules,
};
use harness::{Seq, SessionId};
use rusqlite::Connection;

use crate::local::clock::{boot_millis, deadline, on_the_wall};

use super::error::Fault;
use super::row::Session;
use super::shared::Known;

/// When the lease expires; `None` if it is free.
pub(crate) fn held_until(known: &Known, session: &Session) -> Option<u64> {
    let until = session.token.map(|_| session.until);
    let now = boot_millis();
    // Only of a lease that has not expired it matters whether its holder is alive.
    let held = rules::is_held(until, now, true) && known.liveness.is_open(session.owner);
    until.filter(|_| held)
}

pub(crate) fn holder(known: &Known, session: &Session) -> Option<Holder> {
    let until = held_until(known, session)?;
    Some(Holder::new(Fence(session.fence), on_the_wall(until)))
}

/// Whether the lease is that of the last claim, which was not released.
pub(crate) fn check(
    known: &Known,
    session: Option<&Session>,
    lease: &Lease,
) -> Result<(), StoreError> {
    let gone = || StoreError::Gone { session: lease.session.clone() };
    let Some(session) = session else { return Err(gone()) };
    match rules::check_lease(lease, session.token) {
        // A session that was never written and is not held does not exist.
        Err(_) if !session.exists() && held_until(known, session).is_none() => Err(gone()),
        checked => checked,
    }
}

/// Reads a session whose lease must be held.
pub(crate) fn held(conn: &Connection, known: &Known, lease: &Lease) -> Result<Session, Fault> {
    let session = Session::find(conn, &lease.session)?;
    check(known, session.as_ref(), lease)?;
    session.ok_or_else(|| StoreError::Gone { session: lease.session.clone() }.into())
}

pub(crate) fn claim(
    conn: &Connection,
    known: &Known,
    id: &SessionId,
    ttl: Duration,
) -> Result<Claimed, Fault> {
    let found = Session::find(conn, id)?;
    if let Some(session) = &found {
        known.check(conn, session)?;
        if let Some(until) = held_until(known, session) {
            return Err(StoreError::Busy { session: id.clone(), until: on_the_wall(until) }.into());
        }
    }
    let former = match &found {
        Some(Session { token: None, .. }) | None => FormerHolder::Released,
        Some(session) if !known.liveness.is_open(session.owner) => FormerHolder::Dead,
        Some(_) => FormerHolder::Expired,
    };
    let mut session = match found.clone() {
        Some(session) => session,
        None => {
            let mut session = Session::new(id.clone());
            session.insert(conn)?;
            // Fences grow even if the session was removed and is created again.
            session.fence = floor(conn)?;
            session
        }
    };
    let token = Token::random();
    session.fence += 1;
    session.token = Some(token);
    session.owner = known.liveness.id;
    session.until = deadline(ttl).min(i64::MAX.cast_unsigned());
    session.bare = false;
    session.update(conn, found.as_ref())?;
    let mut claimed = Claimed::new(Lease::new(id.clone(), Fence(session.fence), token));
    claimed.head = Seq(session.head);
    claimed.inbox = InboxSeq(session.inbox);
    claimed.summary = session.summary.map(|(summary, _)| summary);
    claimed.former = former;
    Ok(claimed)
}

pub(crate) fn renew(
    conn: &Connection,
    known: &Known,
    lease: &Lease,
    ttl: Duration,
) -> Result<InboxSeq, Fault> {
    let before = held(conn, known, lease)?;
    let mut session = before.clone();
    session.until = deadline(ttl).min(i64::MAX.cast_unsigned());
    session.update(conn, Some(&before))?;
    Ok(InboxSeq(session.inbox))
}

pub(crate) fn release(
    conn: &Connection,
    known: &Known,
    lease: &Lease,
    read: InboxSeq,
) -> Result<Released, Fault> {
    let before = held(conn, known, lease)?;
    if !before.exists() {
        forget(conn, &before)?;
        return Ok(rules::released(read, InboxSeq(0)));
    }
    let mut session = before.clone();
    session.token = None;
    session.read = session.read.max(read.0).min(session.inbox);
    session.update(conn, Some(&before))?;
    Ok(rules::released(read, InboxSeq(session.inbox)))
}

/// The highest fence of the sessions that are gone.
fn floor(conn: &Connection) -> Result<u64, Fault> {
    let floor: i64 =
        conn.prepare_cached("SELECT floor FROM store")?.query_row([], |row| row.get(0))?;
    Ok(floor.cast_unsigned())
}

/// Takes a session's row away.
pub(crate) fn forget(conn: &Connection, session: &Session) -> Result<(), Fault> {
    conn.prepare_cached("UPDATE store SET floor = max(floor, ?)")?
        .execute([session.fence.cast_signed()])?;
    conn.prepare_cached("DELETE FROM session WHERE key = ?")?.execute([session.key])?;
    Ok(())
}
