//! A store in the memory of this process.

mod due;
mod list;
mod log;
mod session;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use dashmap::DashMap;
use dashmap::mapref::one::RefMut;

use crate::id::{AgentId, Fence, Seq, SessionId};

use super::{
    Appended, Batch, Claimed, DueRequest, DueSessions, Filter, InboxSeq, Lease, Listing, Message,
    Page, ReadRequest, Released, Remove, Sent, SessionStore, StoreError, Token, rules,
};
use due::DueIndex;
use session::{Held, Session, deadline};

/// Keeps sessions in the memory of this process: for tests, and for programs whose sessions need
/// not outlive them. Its clones share their sessions.
///
/// Each method completes at its first poll. Each page of a [`list`](SessionStore::list) sorts the ids
/// of all matching sessions.
///
/// ```
/// use std::time::Duration;
///
/// use harness::SessionId;
/// use harness::store::{MemoryStore, SessionStore, StoreError};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = MemoryStore::new();
/// let session = SessionId::new("order-17")?;
/// let ttl = Duration::from_secs(30);
/// let claimed = store.claim(&session, ttl).await?;
/// assert_eq!(claimed.head.0, 0);
///
/// let again = store.clone().claim(&session, ttl).await;
/// assert!(matches!(again, Err(StoreError::Busy { .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    sessions: DashMap<SessionId, Session>,
    /// The fence of the last claim of any session, so that fences grow even if a session is removed
    /// and created again.
    fence: AtomicU64,
    due: DueIndex,
}

impl MemoryStore {
    /// A store without sessions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

/// For a session whose writes were acknowledged elsewhere: they are repeated here without a lease, and
/// without being judged again.
impl MemoryStore {
    /// Begins a session whose entries up to `pruned` are not here.
    pub(crate) fn begin_after(&self, session: &SessionId, pruned: Seq) {
        self.shared.sessions.entry(session.clone()).or_default().log.begin_after(pruned);
    }

    /// Whether it has no session but this one.
    pub(crate) fn holds_only(&self, session: &SessionId) -> bool {
        self.shared.sessions.iter().all(|other| other.key() == session)
    }

    /// Repeats an append.
    pub(crate) fn repeat_append(&self, session: &SessionId, batch: &Batch<'_>) {
        self.shared.sessions.entry(session.clone()).or_default().put(Token::random(), batch);
    }

    /// Repeats a send.
    pub(crate) fn repeat_send(&self, session: &SessionId, messages: Vec<Message>) {
        self.shared.sessions.entry(session.clone()).or_default().deliver(messages);
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("sessions", &self.shared.sessions.len()).finish()
    }
}

impl Shared {
    fn session(&self, id: &SessionId) -> Result<RefMut<'_, SessionId, Session>, StoreError> {
        self.sessions.get_mut(id).ok_or_else(|| StoreError::Gone { session: id.clone() })
    }

    fn claim(&self, id: &SessionId, ttl: Duration) -> Result<Claimed, StoreError> {
        let mut session = match self.sessions.get_mut(id) {
            Some(session) => session,
            None => self.sessions.entry(id.clone()).or_default(),
        };
        match session.holder() {
            Some(holder) => Err(StoreError::Busy { session: id.clone(), until: holder.until }),
            None => Ok(self.hold(id, &mut session, ttl)),
        }
    }

    /// Takes the lease of a session, which is free.
    fn hold(&self, id: &SessionId, session: &mut Session, ttl: Duration) -> Claimed {
        let fence = Fence(self.fence.fetch_add(1, Ordering::Relaxed) + 1);
        let token = Token::random();
        let former = session.former();
        session.hold(Held { fence, token, deadline: deadline(ttl) });
        let mut claimed = Claimed::new(Lease::new(id.clone(), fence, token));
        claimed.head = session.log.head();
        claimed.inbox = session.inbox();
        claimed.summary = session.summary.as_deref().cloned();
        claimed.former = former;
        claimed
    }

    fn renew(&self, lease: &Lease, ttl: Duration) -> Result<InboxSeq, StoreError> {
        let mut session = self.session(&lease.session)?;
        session.renew(lease, ttl)?;
        Ok(session.inbox())
    }

    fn release(&self, lease: &Lease, read: InboxSeq) -> Result<Released, StoreError> {
        let mut session = self.session(&lease.session)?;
        session.release(lease, read)?;
        self.due.update(&lease.session, &mut session);
        if session.place.is_some() {
            self.due.notify();
        }
        let released = rules::released(read, session.inbox());
        let blank = session.is_blank();
        drop(session);
        if blank {
            // A session that was claimed and never written takes no memory.
            self.sessions.remove_if(&lease.session, |_, session| session.is_blank());
        }
        Ok(released)
    }

    fn send(&self, to: &SessionId, messages: &[Message]) -> Result<Sent, StoreError> {
        let mut session = self.session(to)?;
        if !session.exists() {
            return Err(StoreError::Gone { session: to.clone() });
        }
        let sent = session.send(messages);
        self.due.update(to, &mut session);
        if session.place.is_some() && session.held_for().is_none() {
            self.due.notify();
        }
        Ok(sent)
    }

    fn append(&self, lease: &Lease, batch: &Batch<'_>) -> Result<Appended, StoreError> {
        let mut session = self.session(&lease.session)?;
        let appended = session.append(lease, batch)?;
        if batch.summary.is_some() {
            self.due.update(&lease.session, &mut session);
        }
        Ok(appended)
    }

    fn remove(&self, lease: &Lease, what: Remove) -> Result<(), StoreError> {
        let mut session = self.session(&lease.session)?;
        session.check(lease)?;
        match what {
            Remove::Below(seq) => session.prune(seq),
            Remove::All => {
                drop(session);
                // A claim that came in between keeps the session.
                let removed = self.sessions.remove_if_mut(&lease.session, |id, session| {
                    let held = session.check(lease).is_ok();
                    if held {
                        self.due.remove(id, session);
                    }
                    held
                });
                if removed.is_none() {
                    return Err(match self.sessions.contains_key(&lease.session) {
                        true => StoreError::Fenced { session: lease.session.clone() },
                        false => StoreError::Gone { session: lease.session.clone() },
                    });
                }
            }
        }
        Ok(())
    }
}

#[async_trait]
impl SessionStore for MemoryStore {
    async fn claim(&self, session: &SessionId, ttl: Duration) -> Result<Claimed, StoreError> {
        self.shared.claim(session, ttl)
    }

    async fn claim_due(
        &self,
        request: &DueRequest,
        ttl: Duration,
    ) -> Result<DueSessions, StoreError> {
        Ok(self.shared.claim_due(request, ttl))
    }

    async fn wait_due(&self, _: &[AgentId], timeout: Duration) {
        // What becomes due by its time is found by asking again.
        let _ = tokio::time::timeout(timeout, self.shared.due.changed()).await;
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<InboxSeq, StoreError> {
        self.shared.renew(lease, ttl)
    }

    async fn release(&self, lease: &Lease, read: InboxSeq) -> Result<Released, StoreError> {
        self.shared.release(lease, read)
    }

    async fn append(&self, lease: &Lease, batch: Batch<'_>) -> Result<Appended, StoreError> {
        self.shared.append(lease, &batch)
    }

    async fn send(&self, to: &SessionId, messages: &[Message]) -> Result<Sent, StoreError> {
        self.shared.send(to, messages)
    }

    async fn read(
        &self,
        session: &SessionId,
        request: ReadRequest,
    ) -> Result<Option<Page>, StoreError> {
        match self.shared.sessions.get(session) {
            Some(found) => found.read(session, request),
            None => Ok(None),
        }
    }

    async fn list(
        &self,
        filter: &Filter,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Listing, StoreError> {
        Ok(self.shared.list(filter, after, limit))
    }

    async fn remove(&self, lease: &Lease, what: Remove) -> Result<(), StoreError> {
        self.shared.remove(lease, what)
    }
}
