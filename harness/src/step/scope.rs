//! The scope of a step. It lets any value in a slot emit events and charge spend on behalf of the
//! step that calls it.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::task::futures::TaskLocalFuture;

use crate::id::{AgentId, OpId, Position, RunId, SessionId};
use crate::llm::Spend;

use super::effects::{Effects, Payload, Place};

tokio::task_local! {
    static CURRENT: RunScope;
}

/// The run that a task drives, and where the attempt stands that is being polled.
pub(crate) struct RunScope {
    effects: Arc<dyn Effects>,
    place: Cell<Option<Place>>,
}

impl RunScope {
    /// A run that is between its attempts.
    pub(crate) fn new(effects: Arc<dyn Effects>) -> Self {
        Self { effects, place: Cell::new(None) }
    }

    /// `future`, polled as this run in any task.
    pub(crate) fn wrap<F: Future>(self, future: F) -> TaskLocalFuture<Self, F> {
        CURRENT.scope(self, future)
    }

    /// Calls user code as an attempt of the run that this task drives. `call` must not panic.
    pub(crate) fn at<T>(place: Place, call: impl FnOnce() -> T) -> T {
        let set = |place| CURRENT.try_with(|run| run.place.set(place)).ok();
        let _ = set(Some(place));
        let called = call();
        let _ = set(None);
        called
    }
}

/// The step that runs in this task: its ids, and how to report on its behalf.
///
/// ```
/// use harness::observe;
///
/// #[derive(Debug, serde::Serialize)]
/// struct CacheMiss { key: String }
///
/// // In a client in a slot, without a `Cx`:
/// if let Some(step) = observe::current() {
///     step.emit(CacheMiss { key: "prices".into() });
/// }
/// ```
#[derive(Clone)]
pub struct Scope {
    pub(crate) effects: Arc<dyn Effects>,
    pub(crate) place: Place,
}

/// The scope of the step that polls the caller; `None` outside of a run, and in tasks that were
/// spawned without [`Cx::scope`](crate::Cx::scope).
pub fn current() -> Option<Scope> {
    let here = |run: &RunScope| {
        let place = run.place.get()?;
        Some(Scope { effects: Arc::clone(&run.effects), place })
    };
    CURRENT.try_with(here).ok().flatten()
}

impl Scope {
    /// Emits `event` to the run's observers, as [`Cx::emit`](crate::Cx::emit) does.
    pub fn emit(&self, event: impl Payload) {
        self.effects.emit(self.place, Arc::new(event));
    }

    /// Adds tokens and cost to the spend of the run. They count against its budget.
    pub fn charge(&self, spend: &Spend) {
        self.effects.charge(self.place, spend);
    }

    /// The agent.
    pub fn agent_id(&self) -> &AgentId {
        &self.effects.ids().agent
    }

    /// The session.
    pub fn session_id(&self) -> &SessionId {
        &self.effects.ids().session
    }

    /// The run.
    pub fn run_id(&self) -> &RunId {
        &self.effects.ids().run
    }

    /// The step's name.
    pub fn step(&self) -> &str {
        self.effects.step_name(self.place.step)
    }

    /// The entry into the step.
    pub fn position(&self) -> Position {
        self.place.position
    }

    /// The attempt at that entry, from 1.
    pub fn attempt(&self) -> u32 {
        self.place.attempt
    }

    /// Identifies the entry into the step across processes.
    pub fn op_id(&self) -> OpId {
        self.effects.op_id(self.place)
    }

    /// `future`, polled inside this scope in any task.
    pub(crate) fn wrap<F: Future>(self, future: F) -> Scoped<F> {
        let Self { effects, place } = self;
        Scoped(Box::pin(RunScope { effects, place: Cell::new(Some(place)) }.wrap(future)))
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("session", self.session_id())
            .field("run", self.run_id())
            .field("step", &self.step())
            .field("position", &self.place.position)
            .field("attempt", &self.place.attempt)
            .finish()
    }
}

/// A future with the scope of a step, in any task that polls it.
pub struct Scoped<F>(Pin<Box<TaskLocalFuture<RunScope, F>>>);

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl<F> fmt::Debug for Scoped<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scoped").finish_non_exhaustive()
    }
}
