//! What the tests of durable sessions have in common: a store that does what a test says, a crash,
//! and ways to look into a log.

use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use harness::session::Replay;
use harness::store::{
    Appended, Batch, Claimed, DueRequest, DueSessions, Filter, InboxSeq, Lease, Listing,
    MemoryStore, Message, Page, ReadRequest, Released, Remove, Sent, SessionStore, StoreError,
    Token,
};
use harness::{Outcome, RunRequest, Seq, SessionId, State, UtcMillis, async_trait};
use serde_json::Value;
use tokio::sync::Semaphore;

/// What becomes of one call.
#[derive(Clone)]
pub enum Act {
    Pass,
    /// Nothing is done, and the store reports that it is full.
    Full,
    /// It is done, and the reply is lost.
    LoseAnswer,
    /// Nothing is done.
    Fail,
    /// It never comes back, and nothing is done.
    HangBefore,
    /// It is done, and never comes back.
    HangAfter,
    /// It waits until the test continues it.
    Pause,
    /// It waits until the test gives a permit.
    Wait(Arc<Semaphore>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    Claim,
    Renew,
    Release,
    Append,
    Send,
    Read,
}

type Plan = Box<dyn FnMut(On, u64) -> Act + Send>;

#[derive(Default)]
struct Inner {
    plan: Option<Plan>,
    counts: [u64; 6],
    flushes: u64,
    lease: Option<Lease>,
    /// All leases that were given.
    leases: Vec<Lease>,
    heads: Vec<Seq>,
    /// The last head that was flushed.
    flushed: Seq,
    /// The leases of processes that are dead.
    dead: Vec<Token>,
}

/// A store that follows the plan of a test. Calls of each kind are counted from 1.
#[derive(Clone)]
pub struct Rig {
    pub memory: MemoryStore,
    inner: Arc<Mutex<Inner>>,
    /// Counts the calls that wait.
    reached: Arc<Semaphore>,
    /// Continues them.
    go: Arc<Semaphore>,
}

impl Rig {
    pub fn new(memory: MemoryStore) -> Self {
        Self {
            memory,
            inner: Arc::default(),
            reached: Arc::new(Semaphore::new(0)),
            go: Arc::new(Semaphore::new(0)),
        }
    }

    pub fn with(memory: &MemoryStore, plan: impl FnMut(On, u64) -> Act + Send + 'static) -> Self {
        let rig = Self::new(memory.clone());
        rig.plan(plan);
        rig
    }

    /// Applies `act` to the `n`th call of a kind; all others pass.
    pub fn nth(memory: &MemoryStore, on: On, n: u64, act: Act) -> Self {
        Self::with(memory, move |what, count| match what == on && count == n {
            true => act.clone(),
            false => Act::Pass,
        })
    }

    pub fn plan(&self, plan: impl FnMut(On, u64) -> Act + Send + 'static) {
        self.lock().plan = Some(Box::new(plan));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn count(&self, on: On) -> u64 {
        self.lock().counts[on as usize]
    }

    /// Appends with a flush.
    pub fn flushes(&self) -> u64 {
        self.lock().flushes
    }

    /// The heads that appends returned.
    pub fn heads(&self) -> Vec<Seq> {
        self.lock().heads.clone()
    }

    /// The last durable entry of the log.
    pub fn flushed_to(&self) -> Seq {
        self.lock().flushed
    }

    /// The lease that was used last.
    pub fn lease(&self) -> Option<Lease> {
        self.lock().lease.clone()
    }

    /// The process that holds sessions dies: what it still sends does nothing, and never comes back.
    pub fn kill(&self) {
        let mut inner = self.lock();
        let tokens: Vec<_> = inner.leases.iter().map(|lease| lease.token).collect();
        inner.dead.extend(tokens);
    }

    /// The leases of the process end.
    pub fn end_leases(&self) {
        let leases = std::mem::take(&mut self.lock().leases);
        for lease in leases {
            // Those that were released are void.
            let _ = runtime().block_on(self.memory.release(&lease, InboxSeq(0)));
        }
    }

    /// Waits indefinitely if the process that has the lease is dead.
    async fn alive(&self, lease: &Lease) {
        let dead = self.lock().dead.contains(&lease.token);
        if dead {
            pending().await
        }
    }

    /// A process that hangs, as its store observes it.
    pub async fn hang(&self) {
        self.reached.add_permits(1);
        pending().await
    }

    /// Waits until a call waits.
    pub async fn reached(&self) {
        self.reached.acquire().await.unwrap().forget();
    }

    /// Continues a paused call.
    pub fn go(&self) {
        self.go.add_permits(1);
    }

    async fn call<T>(
        &self,
        on: On,
        work: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let act = {
            let mut inner = self.lock();
            inner.counts[on as usize] += 1;
            let count = inner.counts[on as usize];
            inner.plan.as_mut().map_or(Act::Pass, |plan| plan(on, count))
        };
        let lost = |ambiguous| StoreError::Unavailable {
            what: "a test says so".into(),
            ambiguous,
            source: None,
        };
        match act {
            Act::Pass => work.await,
            Act::Full => Err(StoreError::Full("a test says so".into())),
            Act::Fail => Err(lost(false)),
            Act::LoseAnswer => work.await.and(Err(lost(true))),
            Act::HangBefore => {
                self.reached.add_permits(1);
                pending().await
            }
            Act::HangAfter => {
                let _ = work.await;
                self.reached.add_permits(1);
                pending().await
            }
            Act::Pause => {
                self.reached.add_permits(1);
                self.go.acquire().await.unwrap().forget();
                work.await
            }
            Act::Wait(permits) => {
                self.reached.add_permits(1);
                permits.acquire().await.unwrap().forget();
                work.await
            }
        }
    }
}

#[async_trait]
impl SessionStore for Rig {
    async fn claim(&self, session: &SessionId, ttl: Duration) -> Result<Claimed, StoreError> {
        let claimed = self.call(On::Claim, self.memory.claim(session, ttl)).await;
        if let Ok(claimed) = &claimed {
            let mut inner = self.lock();
            inner.lease = Some(claimed.lease.clone());
            inner.leases.push(claimed.lease.clone());
        }
        claimed
    }

    async fn claim_due(
        &self,
        request: &DueRequest,
        ttl: Duration,
    ) -> Result<DueSessions, StoreError> {
        let due = self.memory.claim_due(request, ttl).await?;
        self.lock().leases.extend(due.claimed.iter().map(|claimed| claimed.lease.clone()));
        Ok(due)
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<InboxSeq, StoreError> {
        self.alive(lease).await;
        self.call(On::Renew, self.memory.renew(lease, ttl)).await
    }

    async fn release(&self, lease: &Lease, read: InboxSeq) -> Result<Released, StoreError> {
        self.alive(lease).await;
        self.call(On::Release, self.memory.release(lease, read)).await
    }

    async fn append(&self, lease: &Lease, batch: Batch<'_>) -> Result<Appended, StoreError> {
        self.alive(lease).await;
        let appended = self.call(On::Append, self.memory.append(lease, batch)).await;
        if let Ok(appended) = &appended {
            let mut inner = self.lock();
            inner.flushes += u64::from(batch.flush);
            inner.heads.push(appended.head);
            if batch.flush {
                inner.flushed = appended.head;
            }
        }
        appended
    }

    async fn send(&self, to: &SessionId, messages: &[Message]) -> Result<Sent, StoreError> {
        self.call(On::Send, self.memory.send(to, messages)).await
    }

    async fn read(
        &self,
        session: &SessionId,
        request: ReadRequest,
    ) -> Result<Option<Page>, StoreError> {
        self.call(On::Read, self.memory.read(session, request)).await
    }

    async fn list(
        &self,
        filter: &Filter,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Listing, StoreError> {
        self.memory.list(filter, after, limit).await
    }

    async fn remove(&self, lease: &Lease, what: Remove) -> Result<(), StoreError> {
        self.memory.remove(lease, what).await
    }
}

/// A runtime of its own, whose time is paused.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

/// Runs until the run settles, or a call hangs: then its process dies, with everything that it had in
/// memory, and its lease ends.
pub fn run_or_crash<S: State>(
    rig: &Rig,
    request: impl FnOnce(&Rig) -> RunRequest<S>,
) -> Option<Outcome<S>> {
    run_or_crash_at(rig, UtcMillis(0), request)
}

/// The same at this time or later.
pub fn run_or_crash_at<S: State>(
    rig: &Rig,
    at: UtcMillis,
    request: impl FnOnce(&Rig) -> RunRequest<S>,
) -> Option<Outcome<S>> {
    let runtime = runtime();
    let outcome = runtime.block_on(async {
        tokio::time::sleep(Duration::from_millis(at.0.saturating_sub(UtcMillis::now().0))).await;
        let mut run = request(rig).start();
        let outcome = tokio::select! {
            outcome = &mut run => Some(outcome.unwrap()),
            () = rig.reached() => None,
        };
        // A process that dies cancels nothing, and releases nothing.
        if outcome.is_none() {
            rig.kill();
        }
        std::mem::forget(run);
        outcome
    });
    drop(runtime);
    if outcome.is_none() {
        rig.end_leases();
    }
    outcome
}

async fn page(store: &MemoryStore, session: &str) -> Option<Page> {
    let id = SessionId::new(session).unwrap();
    let request = ReadRequest::from(Seq(0)).with_messages_after(InboxSeq(0)).limit(u64::MAX);
    store.read(&id, request).await.unwrap()
}

/// The log as it is stored, each entry as JSON.
pub async fn log(store: &MemoryStore, session: &str) -> Vec<Value> {
    let Some(page) = page(store, session).await else { return Vec::new() };
    page.entries.iter().map(|entry| serde_json::from_slice(&entry.bytes).unwrap()).collect()
}

/// The log, its inbox messages and open interrupts, to check that nothing has changed.
pub async fn all(store: &MemoryStore, session: &str) -> String {
    let Some(page) = page(store, session).await else { return String::new() };
    let texts = page.entries.iter().map(|entry| String::from_utf8(entry.bytes.clone()).unwrap());
    format!(
        "{}\n{:?}\n{:?}\n{:?}",
        texts.collect::<Vec<_>>().join("\n"),
        page.messages,
        page.interrupts,
        page.summary
    )
}

/// Whether a run holds the session.
pub async fn is_held(store: &MemoryStore, session: &str) -> bool {
    page(store, session).await.is_some_and(|page| page.holder.is_some())
}

/// The kinds of the entries.
pub async fn kinds(store: &MemoryStore, session: &str) -> Vec<String> {
    let kind = |entry: &Value| {
        let keys = entry.as_object().unwrap().keys().map(String::as_str);
        keys.into_iter().find(|key| !["t", "u"].contains(key)).unwrap().to_owned()
    };
    log(store, session).await.iter().map(kind).collect()
}

pub async fn count(store: &MemoryStore, session: &str, kind: &str) -> usize {
    kinds(store, session).await.iter().filter(|found| *found == kind).count()
}

/// The state that the log replays to.
pub async fn folded(store: &MemoryStore, session: &str) -> Value {
    let mut replay = Replay::default();
    for entry in page(store, session).await.unwrap().entries {
        replay.push(entry.seq, &entry.bytes).unwrap();
    }
    replay.state().unwrap().clone()
}

/// Another process claims the session, as after a pause that was too long.
pub async fn steal(store: &MemoryStore, session: &str, lease: &Lease) -> Lease {
    store.renew(lease, Duration::ZERO).await.unwrap();
    let id = SessionId::new(session).unwrap();
    store.claim(&id, Duration::from_secs(30)).await.unwrap().lease
}

/// Waits until a session has settled and no run holds it.
pub async fn settled(store: &MemoryStore, session: &str) {
    for _ in 0..10_000 {
        let page = page(store, session).await;
        let rests = |page: Page| {
            page.holder.is_none() && page.summary.phase != harness::store::Phase::Running
        };
        if page.is_some_and(rests) {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("session `{session}` does not settle");
}

/// How many open interrupts the store has.
pub async fn questions(store: &MemoryStore, session: &str) -> usize {
    page(store, session).await.unwrap().interrupts.len()
}
