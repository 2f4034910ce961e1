//! The contract of stores as a suite.

#[macro_use]
mod world;
mod child;
mod clauses;
mod hooks;
mod report;
pub(super) mod stop;

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;

use crate::id::SessionId;
use crate::store::SessionStore;

pub use child::child_worker;
use clauses::Clause;
pub use hooks::Damage;
use hooks::Hooks;
pub use report::{Checked, Report, Verdict};
use world::{Stop, World};

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Store = Arc<dyn SessionStore>;

/// How long a clause may take; then the store counts as stuck.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the leases live that are meant to expire.
const SHORT: Duration = Duration::from_millis(100);

/// Checks a store against every promise of [`SessionStore`]. One call shows whether loops can
/// rely on it:
///
/// ```
/// use harness::store::MemoryStore;
/// use harness::testing::Contract;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let store = MemoryStore::new();
/// Contract::new(move || {
///     let store = store.clone();
///     async move { store }
/// })
/// .only(["append-conflict-changes-nothing", "messages-first-wins"]) // leave out to check all
/// .check()
/// .await;
/// # });
/// ```
///
/// The suite uses sessions and agents of its own, which it does not remove, so the store may hold
/// others. It needs a tokio runtime with timers, best one of several threads, and
/// real time: some clauses let a short lease expire. Every clause has a name that stays.
///
/// Some promises cannot be asked for through the trait: what another process sees, what outlives
/// a process that is killed, and what becomes of damaged bytes. For these the author of a store says
/// how to start a process ([`child`](Self::child)), how to damage a session
/// ([`damage`](Self::damage)) and what is stored of it ([`stored`](Self::stored)). Clauses that lack
/// what they need are reported as [skipped](Verdict::Skipped).
pub struct Contract {
    hooks: Hooks,
    short: Duration,
    only: Option<Vec<String>>,
    skip: Vec<(String, String)>,
}

impl Contract {
    /// Checks the store that `open` opens. It is called several times, and each store it gives must
    /// be one more handle on *the same* sessions: another connection, the same folder opened again,
    /// a clone.
    pub fn new<S, F, Fut>(open: F) -> Self
    where
        S: SessionStore,
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = S> + Send + 'static,
    {
        let open = move || -> Boxed<Store> {
            let opening = open();
            Box::pin(async move { Arc::new(opening.await) as Store })
        };
        Self { hooks: Hooks::new(open), short: SHORT, only: None, skip: Vec::new() }
    }

    /// How long the leases live that are meant to expire: 100 ms, if nothing is said. A store that
    /// takes long to answer needs more.
    #[must_use]
    pub fn short_lease(mut self, ttl: Duration) -> Self {
        self.short = ttl;
        self
    }

    /// Moves the store's clock ahead where a lease is meant to expire, instead of waiting.
    #[must_use]
    pub fn advance<F, Fut>(mut self, advance: F) -> Self
    where
        F: Fn(Duration) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.hooks.advance = Some(Box::new(move |by| Box::pin(advance(by))));
        self
    }

    /// Says how to damage what is stored of a session, which is done while the suite has no handle
    /// of the store open. What the hook answers is whether it did so: `false` if this store cannot
    /// be damaged in such a way, and the clause is skipped.
    ///
    /// ```
    /// use harness::testing::{Contract, Damage};
    /// # async fn cut(_: &harness::SessionId) -> bool { false }
    /// # fn with(contract: Contract) -> Contract {
    /// contract.damage(|session, damage| async move {
    ///     match damage {
    ///         Damage::CutTail => cut(&session).await,
    ///         _ => false,
    ///     }
    /// })
    /// # }
    /// ```
    ///
    /// What was damaged stays so, beside the other sessions of the suite.
    #[must_use]
    pub fn damage<F, Fut>(mut self, damage: F) -> Self
    where
        F: Fn(SessionId, Damage) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = bool> + Send + 'static,
    {
        self.hooks.damage = Some(Box::new(move |id, how| Box::pin(damage(id, how))));
        self
    }

    /// Says what is stored of a session, as bytes: the content of its file, its rows as text. They
    /// are only compared, to see whether a store writes to what it does not understand.
    #[must_use]
    pub fn stored<F, Fut>(mut self, stored: F) -> Self
    where
        F: Fn(SessionId) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<u8>> + Send + 'static,
    {
        self.hooks.stored = Some(Box::new(move |id| Box::pin(stored(id))));
        self
    }

    /// Says how to start another process, which opens the same store and calls [`child_worker`]. The
    /// suite lets it write to the session named, which the worker learns from the environment, and
    /// kills it. That process is best the test itself, started again:
    ///
    /// ```no_run
    /// use std::process::Command;
    ///
    /// use harness::store::SessionStore;
    /// use harness::testing::{Contract, child_worker};
    /// # async fn open() -> impl SessionStore { harness::store::MemoryStore::new() }
    ///
    /// // #[tokio::test]
    /// async fn every_clause_is_kept() {
    ///     // The worker itself: of a shell around it, only the shell would be killed.
    ///     let child = |_: &harness::SessionId| {
    ///         let mut command = Command::new(std::env::current_exe().unwrap());
    ///         command.args(["--exact", "the_other_process", "--nocapture"]);
    ///         command.env("MY_STORE_IS_A_CHILD", "1");
    ///         command
    ///     };
    ///     Contract::new(open).child(child).check().await;
    /// }
    ///
    /// /// Does nothing unless it is started by the test above.
    /// // #[tokio::test]
    /// async fn the_other_process() {
    ///     if std::env::var_os("MY_STORE_IS_A_CHILD").is_some() {
    ///         child_worker(open().await).await.unwrap();
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn child(
        mut self,
        spawn: impl Fn(&SessionId) -> std::process::Command + Send + Sync + 'static,
    ) -> Self {
        self.hooks.child = Some(Box::new(spawn));
        self
    }

    /// The most bytes of entries that the store accepts in one batch. Without it, no clause asks for
    /// [`StoreError::TooLarge`](crate::store::StoreError::TooLarge).
    #[must_use]
    pub fn max_batch(mut self, bytes: u64) -> Self {
        self.hooks.max_batch = Some(bytes);
        self
    }

    /// Checks only these clauses. A name that no clause has is a failure.
    #[must_use]
    pub fn only(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.only = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Leaves a clause out, and says so in the report. A name that no clause has is a failure.
    #[must_use]
    pub fn skip(mut self, name: impl Into<String>, why: impl Into<String>) -> Self {
        self.skip.push((name.into(), why.into()));
        self
    }

    /// The names of all clauses, in the order in which they are checked.
    pub fn clauses() -> impl Iterator<Item = &'static str> {
        clauses::all().map(|clause| clause.name)
    }

    /// Checks the store.
    ///
    /// # Panics
    /// If it breaks a clause, with the list of those it breaks.
    pub async fn check(self) {
        self.run().await.assert();
    }

    /// Checks the store and reports the result.
    pub async fn run(self) -> Report {
        let mut checked = self.unknown();
        let hooks = Arc::new(self.hooks);
        for clause in clauses::all() {
            if self.only.as_ref().is_some_and(|only| only.iter().all(|name| name != clause.name)) {
                continue;
            }
            let skipped = self.skip.iter().find(|(name, _)| name == clause.name);
            let verdict = match skipped {
                Some((_, why)) => Verdict::Skipped(why.clone()),
                None => one(clause, hooks.clone(), self.short).await,
            };
            checked.push(Checked { clause: clause.name.into(), verdict });
        }
        Report { checked }
    }

    /// A failure for each name that was given and is no clause: a suite that checks nothing because
    /// of a slip of the pen must not look like a success.
    fn unknown(&self) -> Vec<Checked> {
        let given = self.only.iter().flatten().chain(self.skip.iter().map(|(name, _)| name));
        given
            .filter(|name| clauses::all().all(|clause| clause.name != **name))
            .map(|name| Checked {
                clause: name.clone(),
                verdict: Verdict::Broken("there is no clause of this name".into()),
            })
            .collect()
    }
}

async fn one(clause: &Clause, hooks: Arc<Hooks>, short: Duration) -> Verdict {
    let world = World::new(hooks, short).await;
    let run = AssertUnwindSafe((clause.run)(world)).catch_unwind();
    match tokio::time::timeout(PATIENCE, run).await {
        Ok(Ok(Ok(()))) => Verdict::Kept,
        Ok(Ok(Err(Stop::Broken(why)))) => Verdict::Broken(why),
        Ok(Ok(Err(Stop::Skipped(why)))) => Verdict::Skipped(why),
        Ok(Err(_)) => Verdict::Broken("the store panicked".into()),
        Err(_) => Verdict::Broken(format!("the store did not answer within {PATIENCE:?}")),
    }
}

impl fmt::Debug for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contract")
            .field("short", &self.short)
            .field("only", &self.only)
            .field("skip", &self.skip)
            .finish_non_exhaustive()
    }
}
