//! What a step gets beside the state: its slots, its ids, its effects and its questions.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::clock::UtcMillis;
use crate::context::Context;
use crate::id::{AgentId, OpId, Position, RunId, SessionId};
use crate::llm::Spend;
use crate::question::Question;
use crate::state::Stored;

use super::ask::Ask;
use super::effects::{EffectScope, Effects, Payload, Place, Wake};
use super::scope::{Scope, Scoped};
use super::{Failure, Once, Sleep, StepError};

/// The access of a step to its resources and its run. It dereferences to the context, so the slot
/// `tools` is `cx.tools`. Its methods provide what the run has: ids, questions, effects, events,
/// spend.
///
/// It is cheap to clone and belongs to one attempt at one position.
pub struct Cx<C: Context> {
    shared: Arc<Shared<C>>,
    place: Place,
}

/// The parts that all steps of one run share.
pub(crate) struct Shared<C> {
    pub(crate) context: C,
    pub(crate) effects: Arc<dyn Effects>,
}

/// What the [`Cx`] of an attempt is made of, where it begins.
pub(crate) struct CxParts<'a, C> {
    pub(crate) shared: &'a Arc<Shared<C>>,
    pub(crate) place: &'a Place,
}

impl<C: Context> CxParts<'_, C> {
    #[inline]
    pub(crate) fn cx(&self) -> Cx<C> {
        Cx::new(Arc::clone(self.shared), *self.place)
    }
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

    /// The id of the agent.
    pub fn agent_id(&self) -> &AgentId {
        &self.effects().ids().agent
    }

    /// The id of the session.
    pub fn session_id(&self) -> &SessionId {
        &self.effects().ids().session
    }

    /// The id of the run.
    pub fn run_id(&self) -> &RunId {
        &self.effects().ids().run
    }

    /// The name of the step.
    pub fn step(&self) -> &str {
        self.effects().step_name(self.place.step)
    }

    /// This entry into the step, numbered per session.
    pub fn position(&self) -> Position {
        self.place.position
    }

    /// The attempt at this position, from 1. A retry and a new entry after an answer count.
    pub fn attempt(&self) -> u32 {
        self.place.attempt
    }

    /// The current item, from 0, in a step that has items. See [`Define::each`](crate::Define::each).
    pub fn item(&self) -> Option<u32> {
        self.place.item
    }

    /// Identifies this entry into the step across processes and attempts: an idempotency key for
    /// external systems. All effects of one entry share it, so a step with two effects appends a
    /// name for each.
    pub fn op_id(&self) -> OpId {
        self.effects().op_id(self.place)
    }

    /// Emits a custom event to the run's observers, immediately. A retry of the step emits it
    /// again.
    pub fn emit(&self, event: impl Payload) {
        self.effects().emit(self.place, Arc::new(event));
    }

    /// The spend of this turn so far: all model calls and other charges.
    pub fn usage(&self) -> Spend {
        self.effects().spent()
    }

    /// The failure that led here, in a step of an `.on_error(..)` or a `.finally(..)`.
    pub fn failure(&self) -> Option<Arc<Failure>> {
        self.effects().failure()
    }

    /// Runs an effect once per position, over all attempts of the step: its result is recorded under
    /// `key`, and later attempts return the recorded result.
    ///
    /// The effect runs as a task of its own. A timeout, a stop, a cancelled or dropped run and an
    /// open question wait until it is finished and recorded. An effect that fails is not recorded.
    /// [`Once`] describes what happens if the process dies before the result is recorded, and how to
    /// run an effect at most once.
    ///
    /// Results are kept in the session. Keys that begin with `in-doubt/` are reserved.
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
    /// The error of the effect. A fatal error if `key` is used twice in one attempt, the result does
    /// not round-trip through JSON, the effect panics, or it is in doubt.
    pub fn once<T, F, Fut>(&self, key: &str, effect: F) -> Once<T, F>
    where
        T: Stored + Send + 'static,
        F: FnOnce() -> Fut + Send + 'static, // owns what it uses: `async move || ..`, with clones
        Fut: Future<Output = Result<T, StepError>> + Send + 'static,
    {
        Once::new(self.here(), EffectScope::Position, key, effect)
    }

    /// Runs an effect once per session: like [`once`](Cx::once), for an effect that a second visit of
    /// the step must not repeat either.
    ///
    /// # Errors
    /// Those of [`once`](Cx::once).
    pub fn once_per_session<T, F, Fut>(&self, key: &str, effect: F) -> Once<T, F>
    where
        T: Stored + Send + 'static,
        F: FnOnce() -> Fut + Send + 'static, // owns what it uses: `async move || ..`, with clones
        Fut: Future<Output = Result<T, StepError>> + Send + 'static,
    {
        Once::new(self.here(), EffectScope::Session, key, effect)
    }

    /// Asks a person, or another program, in the middle of a step.
    ///
    /// Without an answer this never resolves: the question is recorded, the step is dropped at its
    /// next `.await`, and the run settles as interrupted. With an answer the step is entered again
    /// from its start. Effects inside [`once`](Cx::once) are not repeated, and earlier answers are
    /// returned immediately. No `timeout`, `select` or default can replace the answer.
    ///
    /// Several questions can be open at once, each under its own key: ask them in one `join!`.
    ///
    /// The answer is to these words: a question that a model drafts is drafted inside
    /// [`once`](Cx::once), so that the next attempt asks the same.
    ///
    /// # Errors
    /// [`AskError`](crate::step::AskError) if `key` is used twice in one attempt, the question
    /// expires, another question was answered under the key, or question or answer do not round-trip
    /// through JSON.
    pub fn ask<Q: Question>(&self, key: impl Into<String>, question: Q) -> Ask<Q> {
        Ask::new(self.here(), key.into(), &question)
    }

    /// Sleeps for a time that outlives the process. When the timer is due is recorded once, under
    /// `key`, so neither a crash nor a new attempt starts it again.
    ///
    /// Until then this does not resolve. Once the step waits for nothing else that it has begun in
    /// [`once`](Cx::once), it is dropped, and entered again from its start when the timer is due: what
    /// must not be repeated, or must not be dropped, belongs in `once`. The run settles as
    /// [waiting](crate::Outcome::Waiting), and any process resumes the session when it is
    /// [due](crate::run::Waiting::until). Without a store, and for less than a second, the run stays
    /// and waits itself. That counts neither as time of the budget nor of the step's time-out.
    ///
    /// Several timers run at once in one `join!`. With an open question the run settles as
    /// interrupted, and the timer still enters the step again; a question with a time limit is
    /// [`.expires(..)`](crate::step::Ask::expires). For a pause that may be lost with the process
    /// there is `tokio::time::sleep`.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use harness::prelude::*;
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Order { reminded: bool }
    /// # async fn remind() -> Result<(), std::io::Error> { Ok(()) }
    /// async fn follow_up(_order: View<Order>, cx: Cx<()>) -> StepResult<Order> {
    ///     cx.sleep("three days", Duration::from_secs(3 * 24 * 3600)).await?;
    ///     cx.once("remind", async || Ok(remind().await?)).await?;
    ///     Ok(Order::update().reminded(true))
    /// }
    /// ```
    ///
    /// # Errors
    /// A fatal error if `key` is used twice in one attempt.
    pub fn sleep(&self, key: impl Into<String>, time: Duration) -> Sleep {
        Sleep::new(self.here(), key.into(), Wake::After(time))
    }

    /// Sleeps until a point in time, a `SystemTime` or [`UtcMillis`], like [`sleep`](Cx::sleep). The
    /// first time that was given under `key` counts.
    ///
    /// # Errors
    /// Those of [`sleep`](Cx::sleep).
    pub fn sleep_until(&self, key: impl Into<String>, time: impl Into<UtcMillis>) -> Sleep {
        Sleep::new(self.here(), key.into(), Wake::At(time.into()))
    }

    /// Resolves when the run is stopped or cancelled, for steps that can finish early.
    pub async fn cancelled(&self) {
        self.effects().stopping().cancelled().await;
    }

    /// Spawns a task of this attempt: it has the step's scope and is aborted when the attempt ends.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let task = tokio::spawn(self.scope(future));
        self.effects().adopt(self.place, task.abort_handle());
        task
    }

    /// Gives `future` the step's scope in any task that polls it, so that
    /// [`observe::current`](crate::observe::current) finds the scope there.
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
