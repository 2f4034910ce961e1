//! Where an agent keeps its sessions, and how.

use std::sync::Arc;
use std::time::Duration;

use crate::compat::Compatibility;
use crate::context::Context;
use crate::journal::Durability;
use crate::recovery::Storage;
use crate::state::State;
use crate::store::SessionStore;

use super::Agent;

/// The duration of a lease, unless an agent sets another.
const LEASE: Duration = Duration::from_secs(30);

/// What an agent sets of how its sessions are stored, in any order.
#[derive(Clone, Default)]
pub(super) struct Stored {
    store: Option<Arc<dyn SessionStore>>,
    durability: Option<Durability>,
    ttl: Option<Duration>,
    pub(super) compatibility: Compatibility,
}

impl Stored {
    /// `None` without a store.
    fn storage(&self) -> Option<Storage> {
        Some(Storage {
            store: Arc::clone(self.store.as_ref()?),
            durability: self.durability.unwrap_or_default(),
            ttl: self.ttl.unwrap_or(LEASE),
            compatibility: self.compatibility,
        })
    }

    /// How a child is stored, in the store of its parent: as its own agent says, and as its parent is
    /// if that has no store and does not say it.
    pub(super) fn of_child(
        &self,
        store: Arc<dyn SessionStore>,
        durability: Durability,
        ttl: Duration,
    ) -> Storage {
        match self.storage() {
            Some(own) => Storage { store, ..own },
            None => Storage {
                store,
                durability: self.durability.unwrap_or(durability),
                ttl: self.ttl.unwrap_or(ttl),
                compatibility: self.compatibility,
            },
        }
    }
}

impl<C: Context, S: State> Agent<C, S> {
    /// Stores the agent's sessions in `store`: the result of each step is recorded before the next
    /// step begins, and any process with the store and this agent can resume a session by its id.
    ///
    /// ```
    /// # use harness::prelude::*;
    /// use harness::store::MemoryStore;
    ///
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Doc { sent: bool }
    /// # #[derive(Question, Serialize, Deserialize)] #[question(answer = bool)] struct Send { to: String }
    /// # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Ask }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let harness = Harness::<(), Doc>::builder("d").start(Step::Ask).steps(|define, step| match step {
    /// #     Step::Ask => define
    /// #         .ask(|_doc, _cx| async move { Ok(Send { to: "all".into() }) })
    /// #         .answer(|_doc, _cx, said| async move { Ok(Doc::update().sent(said.answer)) }).end(),
    /// # }).build()?;
    /// let store = MemoryStore::new(); // or a `FileStore`, which outlives the process
    /// let agent = harness.agent("a", ()).store(store.clone());
    /// let outcome = agent.run(Doc::update(), ()).session("notice-7").await?;
    /// # let Outcome::Interrupted(waiting) = outcome else { panic!() };
    /// # let id = waiting.questions[0].id.clone();
    ///
    /// // Later, elsewhere, with the question's id:
    /// let agent = harness.agent("a", ()).store(store);
    /// let answer = Answers::json(id, true.into()).by("sam");
    /// let ended = agent.resume("notice-7", answer, ()).await?.ended()?;
    /// assert!(ended.state.sent);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use = "it returns the agent with the store"]
    pub fn store(self, store: impl SessionStore) -> Self {
        self.shared_store(Arc::new(store))
    }

    /// [`store`](Agent::store) for a store that is already shared.
    #[must_use = "it returns the agent with the store"]
    pub fn shared_store(self, store: Arc<dyn SessionStore>) -> Self {
        self.change(|inner| inner.stored.store = Some(store))
    }

    /// Sets when commits are made durable. The default is each one, before the next step. Only
    /// sessions in a [`store`](Agent::store) are.
    #[must_use = "it returns the agent with the mode"]
    pub fn durability(self, durability: Durability) -> Self {
        self.change(|inner| inner.stored.durability = Some(durability))
    }

    /// Sets the duration of a lease. The default is 30 seconds. A run renews its lease three times
    /// in that time. If its process stops, another process can claim the session when the lease has
    /// expired. Only sessions in a [`store`](Agent::store) have leases.
    #[must_use = "it returns the agent with the lease time"]
    pub fn lease(self, ttl: Duration) -> Self {
        self.change(|inner| inner.stored.ttl = Some(ttl.max(Duration::from_millis(1))))
    }

    /// Sets which changes of the loop are accepted when it resumes a session that an earlier version
    /// wrote to the [`store`](Agent::store). The default accepts every change that the session does
    /// not depend on.
    #[must_use = "it returns the agent with the rule"]
    pub fn compatibility(self, compatibility: Compatibility) -> Self {
        self.change(|inner| inner.stored.compatibility = compatibility)
    }

    /// `None` without a store.
    pub(super) fn storage(&self) -> Option<Storage> {
        self.inner.stored.storage()
    }
}
