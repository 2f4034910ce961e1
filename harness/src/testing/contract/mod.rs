//! The contract of stores as a suite.

#[macro_use]
mod world;
mod child;
mod clauses;
mod hooks;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::id::SessionId;
use crate::store::SessionStore;

use super::report::Report;
use super::suite::Selection;
pub use child::child_worker;
pub use hooks::Damage;
use hooks::Hooks;
use world::World;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Store = Arc<dyn SessionStore>;

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
/// what they need are reported as [skipped](super::Verdict::Skipped).
pub struct Contract {
    hooks: Hooks,
    short: Duration,
    selection: Selection,
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
        Self { hooks: Hooks::new(open), short: SHORT, selection: Selection::default() }
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
        self.selection.only(names);
        self
    }

    /// Leaves a clause out, and says so in the report. A name that no clause has is a failure.
    #[must_use]
    pub fn skip(mut self, name: impl Into<String>, why: impl Into<String>) -> Self {
        self.selection.skip(name, why);
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
        let (hooks, short) = (Arc::new(self.hooks), self.short);
        let world = || World::new(hooks.clone(), short);
        self.selection.run("the store", clauses::all(), world).await
    }
}

impl fmt::Debug for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contract")
            .field("short", &self.short)
            .field("selection", &self.selection)
            .finish_non_exhaustive()
    }
}
