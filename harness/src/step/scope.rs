//! The scope a step runs in, found without being handed in: what lets any value in a slot emit
//! events and charge for its work on behalf of whichever step is calling it.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::id::{AgentId, OpId, Position, RunId, SessionId};
use crate::llm::Spend;

use super::effects::{Effects, Payload, Place};

thread_local! {
    static CURRENT: RefCell<Option<Active>> = const { RefCell::new(None) };
}

/// A scope that is entered on a thread.
#[derive(Clone)]
pub(crate) struct Active {
    scope: Scope,
    /// What the last `Cx` of this run held, for the next: a step then costs no reference count.
    spare: Option<Spare>,
    /// What the last view held.
    view: Option<Spare>,
}

pub(crate) type Spare = Arc<dyn Any + Send + Sync>;

impl Active {
    pub(crate) fn new(scope: Scope) -> Self {
        Self { scope, spare: None, view: None }
    }

    /// Moves the scope that is entered on this thread to another place of the same run. Gives out
    /// what is spare.
    #[inline]
    pub(crate) fn move_to(place: Place) -> Option<Spare> {
        CURRENT.with_borrow_mut(|current| {
            let active = current.as_mut()?;
            active.scope.place = place;
            active.spare.take()
        })
    }

    /// Takes back what a `Cx` of this place held, if it is dropped where its step is polled.
    #[inline]
    pub(crate) fn give_back(place: Place, spare: Spare) {
        // A thread that ends drops what its locals held; then there is nothing to keep it for.
        let _ = CURRENT.try_with(|current| {
            if let Ok(mut current) = current.try_borrow_mut()
                && let Some(active) = current.as_mut()
                && active.scope.place == place
            {
                active.spare.replace(spare)
            } else {
                Some(spare)
            }
        });
    }

    /// Takes back what a view held, if it is dropped where a step is polled.
    #[inline]
    pub(crate) fn give_back_view(view: Spare) {
        let _ = CURRENT.try_with(|current| {
            if let Ok(mut current) = current.try_borrow_mut()
                && let Some(active) = current.as_mut()
            {
                active.view.replace(view)
            } else {
                Some(view)
            }
        });
    }

    /// As [`take_view`](Self::take_view), of a scope that is not entered.
    pub(crate) fn take_kept_view(&mut self) -> Option<Spare> {
        self.view.take()
    }

    /// Gives out what the last view held that was dropped inside the scope that is entered.
    #[inline]
    pub(crate) fn take_view() -> Option<Spare> {
        CURRENT.with_borrow_mut(|current| current.as_mut()?.view.take())
    }

    /// Polls something inside this scope. Takes and gives back the scope by swapping, so that a
    /// poll costs no reference count.
    pub(crate) fn enter<T>(slot: &mut Option<Active>, poll: impl FnOnce() -> T) -> T {
        struct Restore<'a>(&'a mut Option<Active>);
        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                CURRENT.with_borrow_mut(|current| std::mem::swap(current, self.0));
            }
        }
        CURRENT.with_borrow_mut(|current| std::mem::swap(current, slot));
        let _restore = Restore(slot);
        poll()
    }
}

/// The step at work on this task: who it is, and how to report on its behalf.
///
/// ```
/// use harness::observe;
///
/// #[derive(Debug, serde::Serialize)]
/// struct CacheMiss { key: String }
///
/// // Somewhere in a client that sits in a slot, far away from any `Cx`:
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
    CURRENT.with_borrow(|current| current.as_ref().map(|active| active.scope.clone()))
}

impl Scope {
    /// Emits `event` to the run's observers, as [`Cx::emit`](crate::Cx::emit) does.
    pub fn emit(&self, event: impl Payload) {
        self.effects.emit(self.place, Arc::new(event));
    }

    /// Adds tokens and cost to what the run has spent; its budget counts them.
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
        self.effects.step_name(self.place.step())
    }

    /// The entry into the step.
    pub fn position(&self) -> Position {
        self.place.position
    }

    /// The attempt at that entry, from 1.
    pub fn attempt(&self) -> u32 {
        self.place.attempt()
    }

    /// Names the entry into the step across processes.
    pub fn op_id(&self) -> OpId {
        self.effects.op_id(self.place)
    }

    /// `future`, polled inside this scope wherever it is polled.
    pub(crate) fn wrap<F: Future>(self, future: F) -> Scoped<F> {
        Scoped { scope: Some(Active::new(self)), future: Box::pin(future) }
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("session", self.session_id())
            .field("run", self.run_id())
            .field("step", &self.step())
            .field("position", &self.place.position)
            .field("attempt", &self.place.attempt())
            .finish()
    }
}

/// A future that carries a step's scope into whichever task polls it.
pub struct Scoped<F> {
    scope: Option<Active>,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let future = &mut this.future;
        Active::enter(&mut this.scope, || future.as_mut().poll(cx))
    }
}

impl<F> fmt::Debug for Scoped<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scoped").finish_non_exhaustive()
    }
}
