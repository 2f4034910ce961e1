//! Workers: any number of processes that run the sessions of agents.
//!
//! A [`Worker`] finds in a store which sessions are *due*, claims them and runs them: sessions whose
//! process has ended, whose question was answered or has expired, whose timer has come, and those with
//! an input that was [enqueued](crate::Agent::enqueue). A program that only takes requests and answers
//! needs no worker of its own, and a worker needs no connection to it: they share the store.
//!
//! [`_guide::workers`](crate::_guide::workers) is the page of the guide.

mod backoff;
mod pool;
mod serve;
mod suspects;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;

pub use crate::agent::{Agent, Enqueue};
pub use backoff::FailedSession;

use crate::context::{Context, RuntimeSlots};
use crate::id::{AgentId, SessionId};
use crate::state::State;

use pool::{Pool, Shared};
use serve::Served;
pub use serve::SlotsError;

/// How many sessions a worker runs at once, unless it says otherwise.
const ROOM: usize = 64;

/// Runs the due sessions of agents. See the [module](self).
///
/// ```
/// # use harness::prelude::*;
/// # use harness::store::MemoryStore;
/// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
/// # struct Doc { text: String }
/// # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Write }
/// # async fn write(_: View<Doc>, _: Cx<()>) -> StepResult<Doc> { Ok(Doc::update().text("done")) }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let harness = Harness::<(), Doc>::builder("d").start(Step::Write).steps(|define, step| match step {
/// #     Step::Write => define.run(write).end(),
/// # }).build()?;
/// # let agent = harness.agent("writer", ()).store(MemoryStore::new());
/// # let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
/// # stop.send(()).unwrap();
/// # let terminated = async { let _ = stopped.await; };
/// use harness::worker::Worker;
///
/// // `terminated` is a future such as `tokio::signal::ctrl_c()`.
/// Worker::new().at_most(8).serve(&agent, |_session| async { Ok(()) }).run_until(terminated).await?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Debug)]
#[must_use = "a worker does nothing until it is started"]
pub struct Worker {
    room: usize,
    served: Vec<Served>,
    wrong: Option<WorkerError>,
}

impl Default for Worker {
    fn default() -> Self {
        Self { room: ROOM, served: Vec::new(), wrong: None }
    }
}

impl Worker {
    /// A worker that serves no agent yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many sessions run at once, of all agents together. The default is 64.
    pub fn at_most(mut self, sessions: usize) -> Self {
        self.room = sessions.max(1);
        self
    }

    /// Serves an agent. `slots` makes the runtime slots of each run (`()` if the context has none).
    ///
    /// If it fails, the session is released as it was, for this worker or another one to try again
    /// later: see [`WorkerHandle::failed`].
    pub fn serve<C, S, R, F, Fut>(self, agent: &Agent<C, S>, slots: F) -> Self
    where
        C: Context,
        S: State,
        R: RuntimeSlots<C>,
        F: Fn(SessionId) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, SlotsError>> + Send + 'static,
    {
        self.serve_at_most(usize::MAX, agent, slots)
    }

    /// Serves an agent, of which at most so many sessions run at once.
    pub fn serve_at_most<C, S, R, F, Fut>(
        mut self,
        sessions: usize,
        agent: &Agent<C, S>,
        slots: F,
    ) -> Self
    where
        C: Context,
        S: State,
        R: RuntimeSlots<C>,
        F: Fn(SessionId) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, SlotsError>> + Send + 'static,
    {
        match Served::new(agent, sessions, slots) {
            Some(served) => self.served.push(served),
            None => {
                let agent = agent.id().clone();
                self.wrong.get_or_insert(WorkerError::NoStore { agent });
            }
        }
        self
    }

    /// Starts the worker on the current runtime.
    ///
    /// # Errors
    /// It serves no agent, one without a store, or two under one id in one store.
    ///
    /// # Panics
    /// Outside of a tokio runtime, as [`tokio::spawn`] does.
    pub fn start(self) -> Result<WorkerHandle, WorkerError> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        if self.served.is_empty() {
            return Err(WorkerError::NoAgent);
        }
        let shared = Arc::new(Shared::new(self.room));
        let mut pools: Vec<Pool> = Vec::new();
        for served in self.served {
            let agent = served.agent.clone();
            // One call asks for all agents of a store.
            let its = |pool: &&mut Pool| {
                Arc::ptr_eq(&pool.store, &served.store) && pool.ttl == served.ttl
            };
            let before = match pools.iter_mut().find(its) {
                Some(pool) => pool.served.insert(agent.clone(), Arc::new(served)),
                None => {
                    let (store, ttl) = (Arc::clone(&served.store), served.ttl);
                    let served = HashMap::from([(agent.clone(), Arc::new(served))]);
                    pools.push(Pool { store, ttl, served, shared: Arc::clone(&shared) });
                    None
                }
            };
            if before.is_some() {
                return Err(WorkerError::ServedTwice { agent });
            }
        }
        let (drain, draining) = watch::channel(false);
        let mut tasks = JoinSet::new();
        for pool in pools {
            tasks.spawn(pool.run(draining.clone()));
        }
        Ok(WorkerHandle { shared, drain, tasks })
    }

    /// Runs until `signal`, then [drains](WorkerHandle::drain).
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn run_until(self, signal: impl Future) -> Result<(), WorkerError> {
        let handle = self.start()?;
        signal.await;
        handle.drain().await;
        Ok(())
    }
}

/// A worker at work. Dropping it claims nothing more, and its runs continue. A run that is dropped with
/// its runtime releases its session where it is, and another worker continues it.
#[must_use = "dropping it ends the worker"]
pub struct WorkerHandle {
    shared: Arc<Shared>,
    drain: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl WorkerHandle {
    /// Claims nothing more, and waits until all runs have settled.
    pub async fn drain(mut self) {
        self.drain.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
    }

    /// The sessions that this worker could not run, and tries again later: their slots could not be
    /// made, their loop is incompatible with this program, their log is damaged, or the store failed.
    /// At most 1,000 are remembered. Each failure is also an event of `tracing`.
    #[must_use]
    pub fn failed(&self) -> Vec<FailedSession> {
        self.shared.back_off().list()
    }
}

impl fmt::Debug for WorkerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerHandle").field("failed", &self.failed().len()).finish_non_exhaustive()
    }
}

/// Why a worker does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// It serves no agent.
    #[error("the worker serves no agent (add `.serve(&agent, ..)`)")]
    NoAgent,
    /// An agent has no store to find sessions in.
    #[error("agent `{agent}` has no store (add `.store(..)` to it)")]
    NoStore {
        /// The agent.
        agent: AgentId,
    },
    /// Two agents of one store have one id.
    #[error("agent `{agent}` is served twice (serve each agent of a store once)")]
    ServedTwice {
        /// The agent.
        agent: AgentId,
    },
}
