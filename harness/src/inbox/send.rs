//! Reading and writing the inbox of a session.

use serde_json::Value;

use crate::clock::UtcMillis;
use crate::id::SessionId;
use crate::session::{Digest, InputKey, Session};
use crate::store::{InboxSeq, Page, ReadRequest, Sent, SessionStore, StoreError};

use super::message::{Body, SentFrom, Unread, applied_key, unread};

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

/// Notes that the input of a session's turn was applied, before another takes its place: which input
/// has the id, and that it needs no turn.
pub(crate) async fn note_applied(
    store: &dyn SessionStore,
    session: &SessionId,
    key: &str,
    digest: Option<&Digest>,
) -> Result<(), StoreError> {
    let applied = Body::applied(key);
    if let Some(digest) = digest {
        // The id is taken already, unless the run that began the turn ended before it could.
        let input = InputKey { key: key.to_owned(), digest: digest.clone() };
        let sent = store.send(session, &[Body::begins(&input), applied.clone()]).await?;
        if matches!(sent, Sent::Accepted(_)) {
            return Ok(());
        }
    }
    store.send(session, &[applied]).await.map(|_| ())
}

/// Notes that an input cannot be folded into the state, for those that wait for its turn.
pub(crate) async fn note_skipped(
    store: &dyn SessionStore,
    session: &SessionId,
    key: &str,
    why: &str,
) -> Result<(), StoreError> {
    tracing::warn!(%session, %key, why, "skipping an input");
    store.send(session, &[Body::skipped(key, why)]).await.map(|_| ())
}

/// What a session knows of an input that has an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownInput {
    /// Nothing: no input has the id.
    No,
    /// The id is taken for it.
    Sent,
    /// It was applied.
    Applied,
}

/// What a session knows of an input; `None` if another input has its id.
pub(crate) async fn known_input(
    store: &dyn SessionStore,
    id: &SessionId,
    session: &Session,
    input: &InputKey,
) -> Result<Option<KnownInput>, StoreError> {
    let current = session.input.as_ref() == Some(&input.key);
    if current && let Some(digest) = &session.input_digest {
        // The log decides before the inbox: nothing can be sent to a session before its first turn.
        return Ok((*digest == input.digest).then_some(KnownInput::Applied));
    }
    let messages = read_inbox(store, id).await?;
    let noted = applied_key(&input.key);
    let applied = current || messages.iter().any(|message| message.key == noted);
    let taken = messages.iter().find(|message| message.key == input.key);
    if taken.is_some_and(|message| message.digest != input.digest.as_str()) {
        return Ok(None);
    }
    Ok(Some(match taken {
        _ if applied => KnownInput::Applied,
        Some(_) => KnownInput::Sent,
        None => KnownInput::No,
    }))
}

/// Takes the id of an input for a run that is about to begin its turn. Says whether another input
/// had it before.
pub(crate) async fn reserve_input(
    store: &dyn SessionStore,
    id: &SessionId,
    input: &InputKey,
) -> Result<bool, StoreError> {
    let sent = store.send(id, &[Body::begins(input)]).await?;
    Ok(!matches!(sent, Sent::Accepted(_)))
}

/// Sends an input as the next turn of the session. Says whether another input has its id.
pub(crate) async fn queue_input(
    store: &dyn SessionStore,
    session: &SessionId,
    id: &str,
    update: &Value,
    from: SentFrom,
) -> Result<bool, StoreError> {
    let message = Body::input(id, update.clone(), from.clone());
    let key = message.key.clone();
    if !matches!(store.send(session, &[message]).await?, Sent::Accepted(_)) {
        return Ok(true);
    }
    let inbox = read_inbox(store, session).await?;
    let first = inbox.into_iter().find(|message| message.key == key);
    if first.is_some_and(|first| !matches!(first.body, Some(Body::Input(_)))) {
        // A run that has ended since took the id, for the same input.
        store.send(session, &[Body::queued(id, update.clone(), from)]).await?;
    }
    Ok(false)
}

/// Notifies a session that the turn of one that it has started is over. A session that is gone needs
/// no notice.
pub(crate) async fn send_child_settled(
    store: &dyn SessionStore,
    parent: &SessionId,
    child: &SessionId,
) -> Result<(), StoreError> {
    match store.send(parent, &[Body::child(child)]).await {
        Ok(_) | Err(StoreError::Gone { .. }) => Ok(()),
        Err(error) => Err(error),
    }
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
