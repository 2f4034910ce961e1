//! Sessions at rest in this process: they live in the outcome of their last run.

use std::any::{Any, type_name};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::id::SessionId;
use crate::session::Session;
use crate::state::State;
use crate::step::{Answers, BoxFuture};

use super::Outcome;
use super::request::RunRequest;
use crate::run::error::RunError;

/// A session at rest, and its state.
pub(crate) struct Resting<S> {
    pub(crate) session: Session<usize>,
    pub(crate) state: Arc<S>,
}

/// Where a session rests while no run advances it. Empty while one does, and once the session has
/// moved on to another outcome.
pub(crate) struct Slot<S>(Arc<Mutex<Option<Resting<S>>>>);

impl<S> Slot<S> {
    fn new(resting: Option<Resting<S>>) -> Self {
        Self(Arc::new(Mutex::new(resting)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Resting<S>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Clone for Slot<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// A session that an outcome owns, and the agent it can be resumed with.
pub(crate) struct Rest<S: State> {
    pub(crate) id: SessionId,
    pub(crate) slot: Slot<S>,
    /// Whether it rests in a store, and not here.
    pub(crate) stored: bool,
    agent: Arc<dyn Resumer<S>>,
    /// Where the session came from, for an outcome without a receiver.
    home: Option<Slot<S>>,
}

/// Runtime slots whose type is checked when they are used.
pub(crate) struct ErasedSlots {
    pub(crate) value: Box<dyn Any + Send>,
    pub(crate) type_name: &'static str,
}

/// An agent with its context's types erased: an outcome names only the state.
pub(crate) trait Resumer<S: State>: Send + Sync {
    fn resume(&self, rest: Rest<S>, answers: Answers, slots: ErasedSlots) -> RunRequest<S>;

    /// Waits for the outcome of the turn that begins with an input, by its id.
    fn outcome_of(
        &self,
        session: SessionId,
        input: String,
    ) -> BoxFuture<Result<Outcome<S>, RunError>>;
}

impl<S: State> Rest<S> {
    /// A session that rests here; `None` if its state is lost.
    pub(crate) fn here(
        id: SessionId,
        resting: Option<Resting<S>>,
        agent: Arc<dyn Resumer<S>>,
        home: Option<Slot<S>>,
    ) -> Self {
        Self { id, slot: Slot::new(resting), stored: false, agent, home }
    }

    /// A session that rests in the agent's store.
    pub(crate) fn stored(id: SessionId, agent: Arc<dyn Resumer<S>>) -> Self {
        Self { id, slot: Slot::new(None), stored: true, agent, home: None }
    }

    /// Returns the session to where it came from.
    pub(crate) fn give_back(&self) {
        if let Some(home) = &self.home
            && let Some(resting) = self.slot.lock().take()
        {
            *home.lock() = Some(resting);
        }
    }

    pub(crate) fn resume<R: Send + 'static>(&self, answers: Answers, slots: R) -> RunRequest<S> {
        let slots = ErasedSlots { value: Box::new(slots), type_name: type_name::<R>() };
        self.agent.resume(self.clone(), answers, slots)
    }
}

impl<S: State> Clone for Rest<S> {
    fn clone(&self) -> Self {
        Self {
            id: self.id.clone(),
            slot: self.slot.clone(),
            stored: self.stored,
            agent: Arc::clone(&self.agent),
            home: self.home.clone(),
        }
    }
}

impl<S: State> fmt::Debug for Rest<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rest").field("session", &self.id).finish_non_exhaustive()
    }
}
