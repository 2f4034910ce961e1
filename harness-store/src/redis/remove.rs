//! Removing the beginning of a log, or a whole session.

use harness::store::{Lease, Remove, StoreError};
use redis::Cmd;

use super::claim::check_held;
use super::error::damaged;
use super::frame::MAX_SEQ;
use super::reply::Reply;
use super::scripts;
use super::store::RedisStore;

pub(crate) async fn remove(
    store: &RedisStore,
    lease: &Lease,
    what: Remove,
) -> Result<(), StoreError> {
    let below = match what {
        Remove::Below(seq) => seq.0.min(MAX_SEQ).to_string(),
        Remove::All => String::new(),
    };
    let arguments = |command: &mut Cmd| {
        command.arg(lease.token.to_string()).arg(&below);
    };
    let read = |reply: Reply<'_>| match reply.name() {
        "damaged" => Err(damaged(&lease.session, reply.count(1)?)),
        _ => check_held(store, lease, reply),
    };
    store.client.call_on(&scripts::REMOVE, &lease.session, arguments, read).await?;
    if what == Remove::All {
        store.known.forget(lease);
    }
    Ok(())
}
