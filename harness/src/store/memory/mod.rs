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
use tokio::sync::broadcast;

use crate::id::{Fence, SessionId};

use super::{
    Appended, Batch, Claim, Claimed, Filter, From, Guarantees, Lease, Letter, Listing, Mail, Page,
    Posted, Remove, SessionStore, StoreError, Token,
};
use session::{Held, Session, deadline};

/// How many changed sessions a task that waits for a due one may be behind before it looks at all
/// of them again.
const HINTS: usize = 256;

/// Keeps sessions in the memory of this process: for tests, and for programs whose sessions need
/// not outlive them. Its clones share their sessions.
///
/// Every method but a [`claim`](SessionStore::claim) that waits is done at its first poll. A page of
/// a [`list`](SessionStore::list) sorts the ids of all sessions that match. A claim of any due
/// session looks at all sessions once, then only at those that change and at the moments when a
/// lease expires or a time comes.
///
/// ```
/// use std::time::Duration;
///
/// use harness::SessionId;
/// use harness::store::{Claim, MemoryStore, SessionStore, StoreError};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = MemoryStore::new();
/// let session = SessionId::new("order-17")?;
/// let ttl = Duration::from_secs(30);
/// let held = store.claim(Claim::One(&session), ttl).await?;
/// assert!(held.is_some_and(|held| held.head.0 == 0));
///
/// let again = store.clone().claim(Claim::One(&session), ttl).await;
/// assert!(matches!(again, Err(StoreError::Busy { .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

struct Shared {
    sessions: DashMap<SessionId, Session>,
    /// The fence of the last claim of any session: so fences grow even where a session was removed
    /// and made again.
    fence: AtomicU64,
    /// Names sessions that may have become due, for those who wait for one.
    changed: broadcast::Sender<SessionId>,
}

impl MemoryStore {
    /// A store without sessions.
    #[must_use]
    pub fn new() -> Self {
        let (changed, _) = broadcast::channel(HINTS);
        Self {
            shared: Arc::new(Shared {
                sessions: DashMap::new(),
                fence: AtomicU64::new(0),
                changed,
            }),
        }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
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

    /// Makes the session held, which nobody must hold.
    fn hold(&self, id: &SessionId, session: &mut Session, ttl: Duration) -> Claimed {
        let fence = Fence(self.fence.fetch_add(1, Ordering::Relaxed) + 1);
        let token = Token::random();
        session.hold(Held { fence, token, deadline: deadline(ttl) });
        self.hint(id);
        Claimed {
            lease: Lease { session: id.clone(), fence, token },
            head: session.log.head(),
            mail: session.mail(),
            facts: session.facts.clone(),
        }
    }

    fn claim(&self, id: &SessionId, ttl: Duration) -> Result<Claimed, StoreError> {
        let mut session = match self.sessions.get_mut(id) {
            Some(session) => session,
            None => self.sessions.entry(id.clone()).or_default(),
        };
        if let Some(holder) = session.holder() {
            return Err(StoreError::Busy { session: id.clone(), until: holder.until });
        }
        Ok(self.hold(id, &mut session, ttl))
    }

    fn renew(&self, lease: &Lease, ttl: Duration) -> Result<Mail, StoreError> {
        let mut session = self.session(&lease.session)?;
        session.renew(lease, ttl)?;
        let mail = session.mail();
        let forget = ttl.is_zero() && !session.exists();
        drop(session);
        if forget {
            // A session that was claimed and never written must not take room for ever.
            self.sessions.remove_if(&lease.session, |_, session| session.is_blank());
        }
        self.hint(&lease.session);
        Ok(mail)
    }

    fn append(&self, lease: &Lease, batch: &Batch<'_>) -> Result<Appended, StoreError> {
        let mut session = self.session(&lease.session)?;
        let new = !session.exists();
        let appended = session.append(lease, batch)?;
        // Whoever waits knows when the lease of a session expires, and looks at its facts then.
        let hint = batch.facts.is_some()
            && self.changed.receiver_count() > 0
            && (new || session.held_for().is_none());
        drop(session);
        if hint {
            self.hint(&lease.session);
        }
        Ok(appended)
    }

    fn post(&self, to: &SessionId, letters: &[Letter]) -> Result<Posted, StoreError> {
        let mut session = self.session(to)?;
        if !session.exists() {
            return Err(StoreError::Gone { session: to.clone() });
        }
        let posted = session.post(letters);
        drop(session);
        if matches!(posted, Posted::Here(_)) {
            self.hint(to);
        }
        Ok(posted)
    }

    fn remove(&self, lease: &Lease, what: Remove) -> Result<(), StoreError> {
        let mut session = self.session(&lease.session)?;
        session.check(lease)?;
        match what {
            Remove::Below(seq) => session.prune(seq),
            Remove::All => {
                drop(session);
                // Whoever took the lease in between keeps the session.
                let removed = self
                    .sessions
                    .remove_if(&lease.session, |_, session| session.check(lease).is_ok());
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

    fn hint(&self, id: &SessionId) {
        if self.changed.receiver_count() > 0 {
            // Nobody waits any more: nobody needs to know.
            let _ = self.changed.send(id.clone());
        }
    }
}

#[async_trait]
impl SessionStore for MemoryStore {
    fn guarantees(&self) -> Guarantees {
        Guarantees {
            process_end: false,
            power_loss: false,
            failover: false,
            max_batch: None,
            own_clock: true,
        }
    }

    async fn claim(&self, what: Claim<'_>, ttl: Duration) -> Result<Option<Claimed>, StoreError> {
        match what {
            Claim::One(session) => self.shared.claim(session, ttl).map(Some),
            Claim::Due { agents, wait } => Ok(self.shared.claim_due(agents, wait, ttl).await),
        }
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<Mail, StoreError> {
        self.shared.renew(lease, ttl)
    }

    async fn append(&self, lease: &Lease, batch: Batch<'_>) -> Result<Appended, StoreError> {
        self.shared.append(lease, &batch)
    }

    async fn post(&self, to: &SessionId, letters: &[Letter]) -> Result<Posted, StoreError> {
        self.shared.post(to, letters)
    }

    async fn read(
        &self,
        session: &SessionId,
        from: From,
        mail: Mail,
        limit: u64,
    ) -> Result<Option<Page>, StoreError> {
        match self.shared.sessions.get(session) {
            Some(found) => found.read(session, from, mail, limit),
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
