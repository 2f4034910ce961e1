//! Removing the beginning of a log, or a whole session.

use harness::store::{Lease, Remove, StoreError};
use redis::Cmd;

use super::claim::check_held;
use super::error::damaged;
use super::frame::MAX_SEQ;
use super::inner::Inner;
use super::reply::Reply;
use super::scripts;

pub(crate) async fn remove(inner: &Inner, lease: &Lease, what: Remove) -> Result<(), StoreError> {
    let below = match what {
        Remove::Below(seq) => seq.0.min(MAX_SEQ).to_string(),
        Remove::All => String::new(),
    };
    let arguments = |command: &mut Cmd| {
        command.arg(lease.token.to_string()).arg(&below);
    };
    let read = |reply: Reply<'_>| match reply.name() {
        "damaged" => Err(damaged(&lease.session, reply.count(1)?)),
        _ => check_held(inner, lease, reply),
    };
    inner.client.call_on(&scripts::REMOVE, &lease.session, arguments, read).await?;
    if what == Remove::All {
        inner.known.forget(lease);
    }
    Ok(())
}
