//! A store whose calls fail where a test says so.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::id::{AgentId, SessionId};
use crate::store::{
    Appended, Batch, Claimed, DueRequest, DueSessions, Filter, InboxSeq, Lease, Listing, Message,
    Page, ReadRequest, Released, Remove, Sent, SessionStore, StoreError,
};

/// A method of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// [`SessionStore::claim`].
    Claim,
    /// [`SessionStore::renew`].
    Renew,
    /// [`SessionStore::release`].
    Release,
    /// [`SessionStore::append`].
    Append,
    /// [`SessionStore::send`].
    Send,
    /// [`SessionStore::read`].
    Read,
    /// [`SessionStore::list`].
    List,
    /// [`SessionStore::remove`].
    Remove,
    /// [`SessionStore::claim_due`].
    ClaimDue,
}

type When = Box<dyn FnMut(u64) -> bool + Send>;

struct Fault {
    call: Call,
    /// Whether the call has its effect before it fails.
    done: bool,
    when: When,
}

#[derive(Default)]
struct Script {
    faults: Vec<Fault>,
    calls: [u64; 9],
}

/// Says which calls of a [`Faulty`] store fail. Its clones say it to the same store.
///
/// Calls of a method are numbered from 1.
#[derive(Clone, Default)]
pub struct Faults {
    script: Arc<Mutex<Script>>,
}

impl Faults {
    /// Fails the calls whose number `when` picks, before they have an effect, with
    /// [`StoreError::Unavailable`] that is not ambiguous.
    pub fn before(&self, call: Call, when: impl FnMut(u64) -> bool + Send + 'static) {
        self.with(|script| script.faults.push(Fault { call, done: false, when: Box::new(when) }));
    }

    /// Fails the calls whose number `when` picks *after* they have had their effect, with
    /// [`StoreError::Unavailable`] that is ambiguous: as if the connection broke before the answer
    /// came. A call that fails by itself keeps its own error.
    pub fn after(&self, call: Call, when: impl FnMut(u64) -> bool + Send + 'static) {
        self.with(|script| script.faults.push(Fault { call, done: true, when: Box::new(when) }));
    }

    /// Fails no call from now on.
    pub fn clear(&self) {
        self.with(|script| script.faults.clear());
    }

    /// How often a method was called so far.
    #[must_use]
    pub fn calls(&self, call: Call) -> u64 {
        self.with(|script| script.calls.get(call as usize).copied().unwrap_or(0))
    }

    fn with<T>(&self, with: impl FnOnce(&mut Script) -> T) -> T {
        // A `when` that panicked has changed nothing here.
        with(&mut self.script.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts a call, and says whether it fails: `Some(true)` after it has had its effect.
    fn next(&self, call: Call) -> Option<bool> {
        self.with(|script| {
            let count = script.calls.get_mut(call as usize)?;
            *count += 1;
            let number = *count;
            let faults = script.faults.iter_mut().filter(|fault| fault.call == call);
            // Each is called, so that one that counts calls misses none.
            let hit: Vec<bool> =
                faults.filter_map(|fault| (fault.when)(number).then_some(fault.done)).collect();
            hit.first().copied()
        })
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with(|script| {
            f.debug_struct("Faults")
                .field("faults", &script.faults.len())
                .field("calls", &script.calls)
                .finish()
        })
    }
}

/// A store whose calls fail where a test says so.
///
/// ```
/// use harness::store::{MemoryStore, SessionStore};
/// use harness::testing::{Call, Faulty};
/// use harness::SessionId;
/// use std::time::Duration;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = Faulty::new(MemoryStore::new());
/// let faults = store.faults();
/// faults.before(Call::Claim, |n| n == 1);
/// faults.after(Call::Append, |n| n % 2 == 1); // every other one: done, and the answer is lost
///
/// let id = SessionId::new("order-17")?;
/// let failed = store.claim(&id, Duration::from_secs(1)).await;
/// assert!(failed.is_err_and(|error| !error.is_ambiguous()));
/// assert!(store.claim(&id, Duration::from_secs(1)).await.is_ok());
/// assert_eq!(faults.calls(Call::Claim), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Faulty<S> {
    store: S,
    faults: Faults,
}

impl<S> Faulty<S> {
    /// Wraps `store`. No call fails yet.
    pub fn new(store: S) -> Self {
        Self { store, faults: Faults::default() }
    }

    /// Controls which calls fail.
    pub fn faults(&self) -> Faults {
        self.faults.clone()
    }

    /// The wrapped store.
    pub fn inner(&self) -> &S {
        &self.store
    }

    async fn call<T>(
        &self,
        call: Call,
        inner: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let fail = |ambiguous| StoreError::Unavailable {
            what: format!("a test fails this {call:?}"),
            ambiguous,
            source: None,
        };
        match self.faults.next(call) {
            None => inner.await,
            Some(false) => Err(fail(false)),
            Some(true) => inner.await.and_then(|_| Err(fail(true))),
        }
    }
}

#[async_trait]
impl<S: SessionStore> SessionStore for Faulty<S> {
    async fn claim(&self, session: &SessionId, ttl: Duration) -> Result<Claimed, StoreError> {
        self.call(Call::Claim, self.store.claim(session, ttl)).await
    }

    async fn claim_due(
        &self,
        request: &DueRequest,
        ttl: Duration,
    ) -> Result<DueSessions, StoreError> {
        self.call(Call::ClaimDue, self.store.claim_due(request, ttl)).await
    }

    async fn wait_due(&self, agents: &[AgentId], timeout: Duration) {
        self.store.wait_due(agents, timeout).await;
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<InboxSeq, StoreError> {
        self.call(Call::Renew, self.store.renew(lease, ttl)).await
    }

    async fn release(&self, lease: &Lease, read: InboxSeq) -> Result<Released, StoreError> {
        self.call(Call::Release, self.store.release(lease, read)).await
    }

    async fn append(&self, lease: &Lease, batch: Batch<'_>) -> Result<Appended, StoreError> {
        self.call(Call::Append, self.store.append(lease, batch)).await
    }

    async fn send(&self, to: &SessionId, messages: &[Message]) -> Result<Sent, StoreError> {
        self.call(Call::Send, self.store.send(to, messages)).await
    }

    async fn read(
        &self,
        session: &SessionId,
        request: ReadRequest,
    ) -> Result<Option<Page>, StoreError> {
        self.call(Call::Read, self.store.read(session, request)).await
    }

    async fn list(
        &self,
        filter: &Filter,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Listing, StoreError> {
        self.call(Call::List, self.store.list(filter, after, limit)).await
    }

    async fn remove(&self, lease: &Lease, what: Remove) -> Result<(), StoreError> {
        self.call(Call::Remove, self.store.remove(lease, what)).await
    }
}
