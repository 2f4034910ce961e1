//! One invocation: journalled writes are repeated, then the run begins where they end.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::{BoxFuture, FutureExt};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::context::{Context, RuntimeSlots};
use crate::id::{AgentId, SessionId};
use crate::run::{ChildStart, Kind, Outcome, RunControl, RunError, RunRequest};
use crate::session::ParentSession;
use crate::state::State;
use crate::step::Answers;
use crate::store::{MemoryStore, Phase, StoreError};

use super::checkpoint::Checkpoint;
use super::journalled::{Journalled, Pending, Refuses};
use super::write::Write;
use super::{Delivery, Engine, EngineError};

/// What one invocation of an engine does with a session of an agent.
///
/// The agent's own store, if it has one, is not used.
pub struct Invocation<C: Context, S: State> {
    agent: Agent<C, S>,
    session: String,
    checkpoint: Option<Checkpoint>,
    at_most: Option<u64>,
    on_begin: Option<Box<dyn FnOnce(RunControl) + Send>>,
    parent: Option<Box<ParentSession>>,
    refuses: Option<Refuses>,
}

/// How an invocation has ended.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one for each invocation")]
pub enum Turn<S: State> {
    /// The run has settled.
    Settled {
        /// How.
        outcome: Outcome<S>,
        /// What the engine keeps for the next invocation.
        checkpoint: Checkpoint,
    },
    /// The invocation has made [as many writes as it may](Invocation::at_most). The next one has to
    /// [resume](Invocation::resume) the session, without answers.
    Unfinished {
        /// What the engine keeps for the next invocation.
        checkpoint: Checkpoint,
    },
}

/// Why an invocation has no outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The engine gave the invocation up.
    #[error("the engine gave up the invocation: {source}")]
    Engine {
        /// Why.
        source: EngineError,
        /// The session as of the last result that was journalled; `None` if it has none. An engine
        /// that does not repeat the invocation has to keep it, because what the results say has
        /// happened.
        checkpoint: Option<Box<Checkpoint>>,
    },
    /// The journal holds something that is not the result of a piece of work.
    #[error(
        "result {number} in the journal of the engine is not a write of a session: {source} (the \
         engine must return each result as it was)"
    )]
    Journal {
        /// The number of the piece of work.
        number: u64,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The session cannot be run or resumed, and is unchanged.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The session cannot be kept for the next invocation.
    #[error(transparent)]
    Checkpoint(#[from] StoreError),
}

impl<C: Context, S: State> Invocation<C, S> {
    /// An invocation for a session of this agent that has no checkpoint.
    pub fn new(agent: &Agent<C, S>, session: impl Into<String>) -> Self {
        let (agent, session) = (agent.clone(), session.into());
        let (checkpoint, at_most, on_begin) = (None, None, None);
        Self { agent, session, checkpoint, at_most, on_begin, parent: None, refuses: None }
    }

    /// Sets what the engine has kept of the session.
    #[must_use = "it returns the invocation with the checkpoint"]
    pub fn checkpoint(mut self, checkpoint: Checkpoint) -> Self {
        self.parent = checkpoint.parent();
        self.checkpoint = Some(checkpoint);
        self
    }

    /// Bounds the invocation, because an engine has to read all results of one to replay it. After so
    /// many writes (at least 1) the run stops at its next boundary, which takes a few more.
    #[must_use = "it returns the invocation with the bound"]
    pub fn at_most(mut self, writes: u64) -> Self {
        self.at_most = Some(writes);
        self
    }

    /// Calls `begin` with the control of the run when that begins: an engine that knows where an
    /// invocation is at work can stop it there. In a replay that has everything, no run begins.
    #[must_use = "it returns the invocation with the call"]
    pub fn on_begin(mut self, begin: impl FnOnce(RunControl) + Send + 'static) -> Self {
        self.on_begin = Some(Box::new(begin));
        self
    }

    /// Refuses calls of other agents by the steps, before anything of the child begins: `refuses` gets
    /// the agent, and whether it has runtime slots, which do not come from the call here. What it says
    /// is in the [`CallError`](crate::run::CallError::is_refused) that the step gets.
    #[must_use = "it returns the invocation with the check"]
    pub fn refuses(
        mut self,
        refuses: impl Fn(&AgentId, bool) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.refuses = Some(Box::new(refuses));
        self
    }

    /// Runs a turn of the session, as [`Agent::run`]. `id` identifies the input: a second invocation
    /// with the same one returns what came of the first.
    ///
    /// # Errors
    /// A [`HostError`].
    pub async fn run(
        self,
        engine: &(dyn Engine + '_),
        id: impl Into<String>,
        input: S::Update,
        slots: impl RuntimeSlots<C>,
    ) -> Result<Turn<S>, HostError> {
        let id = id.into();
        self.host(engine, slots.filled(), move |agent, slots, session| {
            agent.run(input, slots).session(session).input_id(id)
        })
        .await
    }

    /// Resumes the session, as [`Agent::resume`].
    ///
    /// # Errors
    /// A [`HostError`].
    pub async fn resume(
        self,
        engine: &(dyn Engine + '_),
        answers: Answers,
        slots: impl RuntimeSlots<C>,
    ) -> Result<Turn<S>, HostError> {
        self.host(engine, slots.filled(), move |agent, slots, session| {
            agent.resume(session, answers, slots)
        })
        .await
    }

    /// Runs a child: the session that a step of another one [has started](super::Delivery::Start). The
    /// invocation is one of that session, and has no checkpoint of it.
    ///
    /// # Errors
    /// A [`HostError`].
    pub async fn child(
        mut self,
        engine: &(dyn Engine + '_),
        child: ChildStart,
        slots: impl RuntimeSlots<C>,
    ) -> Result<Turn<S>, HostError> {
        self.parent = Some(Box::new(child.parent.clone()));
        self.host(engine, slots.filled(), move |agent, slots, _| agent.child_alone(child, slots))
            .await
    }

    /// Does what the session is due for, as a [worker](crate::worker) does: applies the messages of
    /// its inbox, starts the next turn with an input that waits, continues a turn whose time has come
    /// or whose run has crashed. A session that is due for nothing is left as it is.
    ///
    /// # Errors
    /// A [`HostError`].
    pub async fn work(
        self,
        engine: &(dyn Engine + '_),
        slots: impl RuntimeSlots<C>,
    ) -> Result<Turn<S>, HostError> {
        self.host(engine, slots.filled(), move |agent, slots, session| {
            agent.work_alone(session, slots)
        })
        .await
    }

    async fn host(
        self,
        engine: &(dyn Engine + '_),
        slots: C::Runtime,
        request: impl FnOnce(&Agent<C, S>, C::Runtime, String) -> RunRequest<S> + Send + 'static,
    ) -> Result<Turn<S>, HostError> {
        let Self { agent, session, checkpoint, at_most, on_begin, parent, refuses } = self;
        let id = SessionId::new(&session).map_err(|error| RunError::from(Kind::from(error)))?;
        let memory = MemoryStore::new();
        if let Some(checkpoint) = checkpoint.clone() {
            checkpoint.restore(&memory, &id);
        }
        let (store, writes) = Journalled::new(id.clone(), memory.clone());
        let elsewhere = engine.delivers().then(|| store.starts_children(refuses));
        let agent = agent.store(store);
        let (settled, bound) = (Arc::new(AtomicBool::new(false)), CancellationToken::new());
        let bounded = Arc::new(AtomicBool::new(false));
        let run = {
            let (settled, bound) = (Arc::clone(&settled), bound.clone());
            let bounded = Arc::clone(&bounded);
            async move {
                let request = match settled.load(Ordering::Relaxed) {
                    // The journal has everything that the run has written.
                    true => agent.at_rest(session, slots),
                    false => request(&agent, slots, session),
                };
                let (control, mut run) = request.elsewhere(elsewhere).controlled(None);
                if let Some(begin) = on_begin {
                    begin(control.clone());
                }
                tokio::select! {
                    biased;
                    () = bound.cancelled() => {
                        // A run that was asked to stop before does not continue.
                        bounded.store(!control.is_stopped(), Ordering::Relaxed);
                        control.stop();
                        run.await
                    }
                    outcome = &mut run => outcome,
                }
            }
        };
        let live = Live { run: run.boxed(), writes, bounded, pending: None, outcome: None };
        let live = Arc::new(Mutex::new(live));
        let mut journal = Vec::new();
        // The writes since the run began: those before are no progress.
        let (mut number, mut since) = (0, None);
        let (outcome, unfinished) = loop {
            number += 1;
            if at_most.zip(since).is_some_and(|(most, since)| number - since > most.max(1)) {
                bound.cancel();
            }
            let result = engine.run(number, work(Arc::clone(&live)).boxed()).await;
            let result = match result {
                Ok(result) => result,
                Err(source) => {
                    return Err(gave_up(source, checkpoint, parent, journal, &id).await?);
                }
            };
            // The run may have written to the memory what is not journalled.
            journal.push(result.clone());
            let mut live = live.lock().await;
            if let Some(pending) = live.pending.take() {
                since = since.or(pending.write.phase().map(|_| number));
                if let Write::Start(child) = &pending.write
                    && let Err(source) = engine.deliver(Delivery::Start((**child).clone())).await
                {
                    return Err(gave_up(source, checkpoint, parent, journal, &id).await?);
                }
                pending.acknowledge();
                continue;
            }
            if let Some(outcome) = live.outcome.take() {
                break (outcome?, is_bounded(&result));
            }
            // The result of an earlier time.
            let write: Write = serde_json::from_slice(&result)
                .map_err(|source| HostError::Journal { number, source })?;
            match write {
                over @ (Write::Over | Write::Bounded) if settled.load(Ordering::Relaxed) => {
                    break ((&mut live.run).await?, matches!(over, Write::Bounded));
                }
                // It was refused. It is asked for again, in the next piece of work.
                Write::Over | Write::Bounded => {}
                Write::Start(child) => {
                    if let Err(source) = engine.deliver(Delivery::Start(*child)).await {
                        return Err(gave_up(source, checkpoint, parent, journal, &id).await?);
                    }
                }
                write => {
                    if let Some(phase) = write.phase() {
                        since = since.or(Some(number));
                        settled.store(phase != Phase::Running, Ordering::Relaxed);
                    }
                    write.repeat(&memory, &id);
                }
            }
        };
        let Some(kept) = Checkpoint::of(&memory, &id).await? else {
            return Err(StoreError::Gone { session: id }.into());
        };
        let checkpoint = kept.with_parent(parent);
        if !unfinished {
            let over = checkpoint.as_over(&id).map(Delivery::Over);
            let left = checkpoint.left_children(&id).await?;
            for delivery in left.into_iter().map(Delivery::Stop).chain(over) {
                if let Err(source) = engine.deliver(delivery).await {
                    let checkpoint = Some(Box::new(checkpoint));
                    return Err(HostError::Engine { source, checkpoint });
                }
            }
        }
        Ok(match unfinished {
            true => Turn::Unfinished { checkpoint },
            false => Turn::Settled { outcome, checkpoint },
        })
    }
}

/// The run of an invocation. It begins at its first poll, when the journal has no more results.
struct Live<S: State> {
    run: BoxFuture<'static, Result<Outcome<S>, RunError>>,
    writes: mpsc::UnboundedReceiver<Pending>,
    /// Whether the run was stopped because of the bound.
    bounded: Arc<AtomicBool>,
    /// The write that the engine journals now.
    pending: Option<Pending>,
    outcome: Option<Result<Outcome<S>, RunError>>,
}

/// Runs the session up to its next write. The run is polled nowhere else, so no step works while the
/// engine does not know of it.
async fn work<S: State>(live: Arc<Mutex<Live<S>>>) -> Vec<u8> {
    let mut live = live.lock().await;
    let Live { run, writes, bounded, .. } = &mut *live;
    let write = tokio::select! {
        biased;
        Some(pending) = writes.recv() => {
            let write = to_vec(&pending.write);
            live.pending = Some(pending);
            write
        }
        outcome = run => {
            let stopped = matches!(outcome, Ok(Outcome::Stopped(_)));
            let over = match stopped && bounded.load(Ordering::Relaxed) {
                true => Write::Bounded,
                false => Write::Over,
            };
            live.outcome = Some(outcome);
            to_vec(&over)
        }
    };
    write
}

fn is_bounded(result: &[u8]) -> bool {
    matches!(serde_json::from_slice(result), Ok(Write::Bounded))
}

/// The error of an invocation that the engine gave up, with the session as of the last result of its
/// journal.
async fn gave_up(
    source: EngineError,
    checkpoint: Option<Checkpoint>,
    parent: Option<Box<ParentSession>>,
    journal: Vec<Vec<u8>>,
    id: &SessionId,
) -> Result<HostError, StoreError> {
    let replayed = replayed(checkpoint, journal, id).await?;
    let checkpoint = replayed.map(|it| Box::new(it.with_parent(parent)));
    Ok(HostError::Engine { source, checkpoint })
}

async fn replayed(
    checkpoint: Option<Checkpoint>,
    journal: Vec<Vec<u8>>,
    id: &SessionId,
) -> Result<Option<Checkpoint>, StoreError> {
    let memory = MemoryStore::new();
    if let Some(checkpoint) = checkpoint {
        checkpoint.restore(&memory, id);
    }
    for write in journal.iter().filter_map(|result| serde_json::from_slice::<Write>(result).ok()) {
        write.repeat(&memory, id);
    }
    Checkpoint::of(&memory, id).await
}

fn to_vec(write: &Write) -> Vec<u8> {
    // Strings, numbers and lists: nothing in it fails.
    serde_json::to_vec(write).unwrap_or_default()
}

impl<C: Context, S: State> fmt::Debug for Invocation<C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invocation")
            .field("agent", &self.agent)
            .field("session", &self.session)
            .field("checkpoint", &self.checkpoint)
            .field("at_most", &self.at_most)
            .finish()
    }
}
