//! A store that fails when it is told to.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::id::SessionId;
use crate::store::{
    Appended, Batch, Claim, Claimed, Filter, From, Guarantees, Lease, Letter, Listing, Mail, Page,
    Posted, Remove, SessionStore, StoreError,
};

/// A method of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// [`SessionStore::claim`].
    Claim,
    /// [`SessionStore::renew`].
    Renew,
    /// [`SessionStore::append`].
    Append,
    /// [`SessionStore::post`].
    Post,
    /// [`SessionStore::read`].
    Read,
    /// [`SessionStore::list`].
    List,
    /// [`SessionStore::remove`].
    Remove,
}

type When = Box<dyn FnMut(u64) -> bool + Send>;

struct Fault {
    call: Call,
    /// Whether the call is done before it fails.
    done: bool,
    when: When,
}

#[derive(Default)]
struct Script {
    faults: Vec<Fault>,
    calls: [u64; 7],
}

/// Says which calls of a [`Faulty`] store fail. Its clones say it to the same store.
///
/// Calls of a method are numbered from 1.
#[derive(Clone, Default)]
pub struct Faults {
    script: Arc<Mutex<Script>>,
}

impl Faults {
    /// Lets the calls whose number `when` picks fail before anything is done, with
    /// [`StoreError::Unavailable`] that is not ambiguous.
    pub fn before(&self, call: Call, when: impl FnMut(u64) -> bool + Send + 'static) {
        self.with(|script| script.faults.push(Fault { call, done: false, when: Box::new(when) }));
    }

    /// Lets the calls whose number `when` picks be done and *then* fail, with
    /// [`StoreError::Unavailable`] that is ambiguous: as if the connection had broken before the
    /// answer came. A call that fails by itself keeps its own error.
    pub fn after(&self, call: Call, when: impl FnMut(u64) -> bool + Send + 'static) {
        self.with(|script| script.faults.push(Fault { call, done: true, when: Box::new(when) }));
    }

    /// Lets no call fail from now on.
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

    /// Counts a call, and says whether it fails: `Some(true)` after it was done.
    fn next(&self, call: Call) -> Option<bool> {
        self.with(|script| {
            let count = script.calls.get_mut(call as usize)?;
            *count += 1;
            let number = *count;
            let faults = script.faults.iter_mut().filter(|fault| fault.call == call);
            // Each is asked, so that one that counts for itself does not miss a call.
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
/// use harness::store::{Claim, MemoryStore, SessionStore};
/// use harness::testing::{Call, Faulty};
/// use harness::SessionId;
/// use std::time::Duration;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = Faulty::new(MemoryStore::new());
/// let faults = store.faults();
/// faults.before(Call::Claim, |n| n == 1);
/// faults.after(Call::Append, |n| n % 2 == 1); // every other one: done, and the answer lost
///
/// let id = SessionId::new("order-17")?;
/// let failed = store.claim(Claim::One(&id), Duration::from_secs(1)).await;
/// assert!(failed.is_err_and(|error| !error.is_ambiguous()));
/// assert!(store.claim(Claim::One(&id), Duration::from_secs(1)).await.is_ok());
/// assert_eq!(faults.calls(Call::Claim), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Faulty<S> {
    store: S,
    faults: Faults,
}

impl<S> Faulty<S> {
    /// Stands before `store`. No call fails yet.
    pub fn new(store: S) -> Self {
        Self { store, faults: Faults::default() }
    }

    /// Where to say what fails.
    pub fn faults(&self) -> Faults {
        self.faults.clone()
    }

    /// The store behind.
    pub fn inner(&self) -> &S {
        &self.store
    }

    async fn call<T>(
        &self,
        call: Call,
        inner: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let fail = |ambiguous| StoreError::Unavailable {
            what: format!("a test lets this {call:?} fail"),
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
    fn guarantees(&self) -> Guarantees {
        self.store.guarantees()
    }

    async fn claim(&self, what: Claim<'_>, ttl: Duration) -> Result<Option<Claimed>, StoreError> {
        self.call(Call::Claim, self.store.claim(what, ttl)).await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<Mail, StoreError> {
        self.call(Call::Renew, self.store.renew(lease, ttl)).await
    }

    async fn append(&self, lease: &Lease, batch: Batch<'_>) -> Result<Appended, StoreError> {
        self.call(Call::Append, self.store.append(lease, batch)).await
    }

    async fn post(&self, to: &SessionId, letters: &[Letter]) -> Result<Posted, StoreError> {
        self.call(Call::Post, self.store.post(to, letters)).await
    }

    async fn read(
        &self,
        session: &SessionId,
        from: From,
        mail: Mail,
        limit: u64,
    ) -> Result<Option<Page>, StoreError> {
        self.call(Call::Read, self.store.read(session, from, mail, limit)).await
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
