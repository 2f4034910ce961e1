//! Reading and writing the inbox of a session.

use crate::clock::UtcMillis;
use crate::id::SessionId;
use crate::session::Session;
use crate::store::{InboxSeq, Page, ReadRequest, Sent, SessionStore, StoreError};

use super::message::{Body, Unread, unread};

/// A session without its entries and messages.
pub(crate) async fn summary(
    store: &dyn SessionStore,
    session: &SessionId,
) -> Result<Option<Page>, StoreError> {
    store.read(session, ReadRequest::summary()).await
}

/// The messages after those that were applied, and the seq of the last message.
pub(crate) async fn read_inbox_after(
    store: &dyn SessionStore,
    session: &SessionId,
    applied: InboxSeq,
) -> Result<(Vec<Unread>, InboxSeq), StoreError> {
    match store.read(session, ReadRequest::messages_after(applied)).await? {
        Some(page) => Ok((unread(page.messages), page.inbox)),
        None => Ok((Vec::new(), applied)),
    }
}

/// All messages of a session.
pub(crate) async fn read_inbox(
    store: &dyn SessionStore,
    session: &SessionId,
) -> Result<Vec<Unread>, StoreError> {
    Ok(read_inbox_after(store, session, InboxSeq(0)).await?.0)
}

/// Notes that an input was applied, before another takes its place.
pub(crate) async fn note_applied(
    store: &dyn SessionStore,
    session: &SessionId,
    key: &str,
) -> Result<(), StoreError> {
    store.send(session, &[Body::applied(key)]).await.map(|_| ())
}

/// Asks the holder to stop, if there is one. Says whether there is.
pub(crate) async fn send_stop(
    store: &dyn SessionStore,
    session: &SessionId,
) -> Result<bool, StoreError> {
    let page = summary(store, session).await?;
    let Some(holder) = page.and_then(|page| page.holder) else { return Ok(false) };
    let sent = store.send(session, &[Body::stop(holder.fence, None)]).await?;
    Ok(matches!(sent, Sent::Accepted(_)))
}

/// Sends the expiry of overdue interrupts, so that it is decided whether an answer or the clock was
/// first.
pub(crate) async fn send_expired(
    store: &dyn SessionStore,
    id: &SessionId,
    session: &Session,
) -> Result<(), StoreError> {
    let now = UtcMillis::now();
    for asked in session.interrupts.iter().filter(|asked| asked.is_overdue(now)) {
        // An answer that was first stays in the inbox.
        store.send(id, &[Body::expired(&asked.interrupt.id)]).await?;
    }
    Ok(())
}
