use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;

use crate::context::Context;
use crate::id::{AgentId, OpId, Position, RunId, SessionId};
use crate::llm::Spend;
use crate::question::Question;

use super::ask::Ask;
use super::effects::{EffectScope, Effects, Payload, Place};
use super::scope::{Scope, Scoped};
use super::{Failure, Once, StepError};

/// What a step reaches the world through. It dereferences to the context, so a slot `tools` is
/// `cx.tools`; its own methods are what the run offers: ids, questions, effects, events, limits.
///
/// It is cheap to clone and belongs to one attempt at one position.
pub struct Cx<C: Context> {
    shared: Arc<Shared<C>>,
    place: Place,
}

/// What all steps of one run share.
pub(crate) struct Shared<C> {
    pub(crate) context: C,
    pub(crate) effects: Arc<dyn Effects>,
}

impl<C: Context> Cx<C> {
    pub(crate) fn new(shared: Arc<Shared<C>>, place: Place) -> Self {
        Self { shared, place }
    }

    fn effects(&self) -> &Arc<dyn Effects> {
        &self.shared.effects
    }

    pub(crate) fn here(&self) -> Scope {
        Scope { effects: Arc::clone(self.effects()), place: self.place }
    }

    /// The agent that runs.
    pub fn agent_id(&self) -> &AgentId {
        &self.effects().ids().agent
    }

    /// The session that is advanced.
    pub fn session_id(&self) -> &SessionId {
        &self.effects().ids().session
    }

    /// This run.
    pub fn run_id(&self) -> &RunId {
        &self.effects().ids().run
    }

    /// The name of the step at work.
    pub fn step(&self) -> &str {
        self.effects().step_name(self.place.step)
    }

    /// This entry into the step, numbered over the session.
    pub fn position(&self) -> Position {
        self.place.position
    }

    /// The attempt at this position, from 1. Retries and re-entries after an answer count.
    pub fn attempt(&self) -> u32 {
        self.place.attempt
    }

    /// The item at work, from 0, in a step that has items; see [`Define::each`](crate::Define::each).
    pub fn item(&self) -> Option<u32> {
        self.place.item
    }

    /// Names this entry into the step across processes and attempts: an idempotency key to give to
    /// the outside world. All that one entry does shares it: a step that acts twice adds a name for
    /// each.
    pub fn op_id(&self) -> OpId {
        self.effects().op_id(self.place)
    }

    /// Emits an event of your own to the run's observers: live, and again if the step is tried
    /// again.
    pub fn emit(&self, event: impl Payload) {
        self.effects().emit(self.place, Arc::new(event));
    }

    /// What this turn has spent so far, on all models and whatever else was charged.
    pub fn usage(&self) -> Spend {
        self.effects().spent()
    }

    /// The failure that led here, in a step that an `.on_error(..)` or a `.finally(..)` names.
    pub fn failure(&self) -> Option<Arc<Failure>> {
        self.effects().failure()
    }

    /// Runs an effect once per position, however often the step is tried: its result is recorded
    /// under `key`, and later attempts get the recorded one.
    ///
    /// The effect runs as a task of its own: a timeout, a stop, a cancelled or dropped run and a
    /// question asked beside it all wait for it, then record it. An effect that fails is not
    /// recorded. What a process that dies in between means, and how to have an effect happen at
    /// most once all the same, [`Once`] says.
    ///
    /// Results are kept in the session. Keys that begin with `in-doubt/` are the harness's own.
    ///
    /// ```
    /// # use harness::prelude::*;
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Order { receipt: Option<String> }
    /// # async fn charge(_key: &str) -> Result<String, std::io::Error> { Ok("r-1".into()) }
    /// async fn pay(_order: View<Order>, cx: Cx<()>) -> StepResult<Order> {
    ///     let key = cx.op_id().to_string();
    ///     let receipt = cx.once("charge", async move || Ok(charge(&key).await?)).await?;
    ///     Ok(Order::update().receipt(Some(receipt)))
    /// }
    /// ```
    ///
    /// # Errors
    /// The effect's own error; a fatal one if `key` is used twice in one attempt, if a result does
    /// not go through JSON, if the effect panics, or if it is in doubt.
    pub fn once<T, F, Fut>(&self, key: &str, effect: F) -> Once<T, F>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, StepError>> + Send + 'static,
    {
        Once::new(self.here(), EffectScope::Position, key, effect)
    }

    /// Runs an effect once in the whole life of the session: the wider scope of
    /// [`once`](Cx::once), for what a second visit to the step must not repeat either.
    ///
    /// # Errors
    /// As [`once`](Cx::once).
    pub fn once_per_session<T, F, Fut>(&self, key: &str, effect: F) -> Once<T, F>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, StepError>> + Send + 'static,
    {
        Once::new(self.here(), EffectScope::Session, key, effect)
    }

    /// Asks a person, or another program, in the middle of a step.
    ///
    /// Without an answer this never resolves: the question is recorded, the step is dropped at its
    /// next pause, and the run settles as interrupted. Once an answer is there the step is entered
    /// again from its top; what it did inside [`once`](Cx::once) is not done again, and earlier
    /// answers come back at once. So no `timeout`, `select` or default can stand in for the answer.
    ///
    /// Several questions may wait at once, each under its own key: ask them in one `join!`.
    ///
    /// # Errors
    /// [`AskError`](crate::AskError) if `key` is used twice in one attempt, or question or answer
    /// do not go through JSON.
    pub fn ask<Q: Question>(&self, key: impl Into<String>, question: Q) -> Ask<Q> {
        Ask::new(self.here(), key.into(), &question)
    }

    /// Waits until a moment in time. The wait is held in memory: a process that ends forgets it,
    /// until timers are part of durable sessions.
    pub async fn sleep_until(&self, time: SystemTime) {
        let wait = time.duration_since(SystemTime::now()).unwrap_or_default();
        tokio::time::sleep(wait).await;
    }

    /// Resolves when the run is asked to stop or is cancelled: for steps that can wind up early.
    pub async fn cancelled(&self) {
        self.effects().stopping().cancelled().await;
    }

    /// Spawns a task that belongs to this attempt: it carries the step's scope, and is aborted
    /// when the attempt ends.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let task = tokio::spawn(self.scope(future));
        self.effects().adopt(self.place, task.abort_handle());
        task
    }

    /// Carries the step's scope into whichever task polls `future`, so that what it calls finds it
    /// by [`observe::current`](crate::observe::current).
    pub fn scope<F: Future>(&self, future: F) -> Scoped<F> {
        self.here().wrap(future)
    }
}

impl<C: Context> Clone for Cx<C> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), place: self.place }
    }
}

impl<C: Context> Deref for Cx<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.shared.context
    }
}

impl<C: Context> fmt::Debug for Cx<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cx").field(&self.here()).finish()
    }
}
