//! Sessions that rest in the hands of an outcome.

use std::any::{Any, type_name};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::id::SessionId;
use crate::session::{Memory, Session};
use crate::state::State;
use crate::step::Answers;

use super::request::RunRequest;

/// Where a session rests while no run advances it. Empty while one does, and once it has moved on
/// to another outcome.
pub(crate) struct Slot<S>(Arc<Mutex<Option<Session<S>>>>);

impl<S> Slot<S> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Session<S>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the session back, with what effects recorded meanwhile.
    pub(crate) fn put_back(&self, mut session: Session<S>, late: Option<Memory>) {
        if let Some(late) = late {
            session.remember(late);
        }
        *self.lock() = Some(session);
    }
}

impl<S> Clone for Slot<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// A session that an outcome owns, and the agent it can go on with.
pub(crate) struct Held<S: State> {
    pub(crate) id: SessionId,
    pub(crate) slot: Slot<S>,
    /// Whether it rests in a store, and not here.
    pub(crate) stored: bool,
    agent: Arc<dyn Resumer<S>>,
    /// Where the session came from, for an outcome that nobody takes.
    home: Option<Slot<S>>,
}

/// Runtime slots whose type is checked when they are used.
pub(crate) struct ErasedSlots {
    pub(crate) value: Box<dyn Any + Send>,
    pub(crate) type_name: &'static str,
}

/// An agent with its context's types erased: an outcome names only the state.
pub(crate) trait Resumer<S: State>: Send + Sync {
    fn resume(&self, held: Held<S>, answers: Answers, slots: ErasedSlots) -> RunRequest<S>;
}

impl<S: State> Held<S> {
    pub(crate) fn new(
        session: Session<S>,
        agent: Arc<dyn Resumer<S>>,
        home: Option<Slot<S>>,
    ) -> Self {
        let id = session.id.clone();
        Self { id, slot: Slot(Arc::new(Mutex::new(Some(session)))), stored: false, agent, home }
    }

    /// A session that rests in the agent's store.
    pub(crate) fn stored(id: SessionId, agent: Arc<dyn Resumer<S>>) -> Self {
        Self { id, slot: Slot(Arc::new(Mutex::new(None))), stored: true, agent, home: None }
    }

    /// Gives the session back to where it came from.
    pub(crate) fn give_back(&self) {
        if let Some(home) = &self.home
            && let Some(session) = self.slot.lock().take()
        {
            home.put_back(session, None);
        }
    }

    pub(crate) fn resume<R: Send + 'static>(&self, answers: Answers, slots: R) -> RunRequest<S> {
        let slots = ErasedSlots { value: Box::new(slots), type_name: type_name::<R>() };
        self.agent.resume(self.clone(), answers, slots)
    }
}

impl<S: State> Clone for Held<S> {
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

impl<S: State> fmt::Debug for Held<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("session", &self.id).finish_non_exhaustive()
    }
}
