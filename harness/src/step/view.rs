use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::state::State;

use super::scope::Active;

/// A cheap shared view of the state, as it was when the step was entered.
///
/// It dereferences to the state and never changes under its holder. The executor folds a step's
/// update into the state in place; a view that is still held by then (in a spawned task, say)
/// costs one clone of the state.
pub struct View<S: State> {
    /// Taken only when this is dropped.
    state: Option<Arc<S>>,
}

impl<S: State> View<S> {
    pub(crate) fn new(state: Arc<S>) -> Self {
        Self { state: Some(state) }
    }

    #[allow(clippy::expect_used, reason = "only `drop` takes it, after which nobody has `self`")]
    fn shared(&self) -> &Arc<S> {
        self.state.as_ref().expect("a `View` that is not dropped holds its state")
    }
}

impl<S: State> Clone for View<S> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone() }
    }
}

impl<S: State> Drop for View<S> {
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            Active::give_back_view(state);
        }
    }
}

impl<S: State> Deref for View<S> {
    type Target = S;

    fn deref(&self) -> &S {
        self.shared()
    }
}

impl<S: State + fmt::Debug> fmt::Debug for View<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared().fmt(f)
    }
}

impl<S: State + PartialEq> PartialEq<S> for View<S> {
    fn eq(&self, other: &S) -> bool {
        **self == *other
    }
}

/// The second handle to a state: what views are made of. It goes out with a view and comes back
/// when that is dropped, so that a step costs no reference count.
pub(crate) struct Twin<S>(Option<Arc<S>>);

impl<S: State> Twin<S> {
    pub(crate) fn new() -> Self {
        Self(None)
    }

    /// A handle to `state` for a view.
    #[inline]
    pub(crate) fn lend(&mut self, state: &Arc<S>) -> Arc<S> {
        match self.0.take() {
            Some(twin) if Arc::ptr_eq(&twin, state) => twin,
            _ => Arc::clone(state),
        }
    }

    /// Takes back what a view gave back, if anything.
    #[inline]
    pub(crate) fn take_back(&mut self, given_back: Option<Arc<S>>) {
        self.0 = given_back;
    }

    /// Changes the state: in place if no view of it is held, else in a clone.
    #[inline]
    #[allow(unsafe_code, reason = "a step would cost three locked operations, half of its time")]
    pub(crate) fn change(&mut self, state: &mut Arc<S>, change: impl FnOnce(&mut S)) {
        if let Some(twin) = &mut self.0
            && Arc::ptr_eq(state, twin)
            && Arc::strong_count(state) == 2
        {
            // What other threads did with handles they have dropped since is done before this.
            fence(Ordering::Acquire);
            // SAFETY: there are two handles to this allocation, and both are borrowed mutably here
            // for as long as the reference lives: `state`, and `twin` (the same allocation, by
            // `ptr_eq`). A handle can only be made from a handle, or from a `Weak`; no other handle
            // exists, as the count is 2, and no `Weak` is ever made: the `Arc` inside a `View` and
            // the one in a session never leave this crate, which does not downgrade them. So nobody
            // else can reach the state or start to, which is what `Arc::get_mut` asks for. The
            // pointer of `as_ptr` may be written through: it is the allocation's own, not one made
            // from a shared reference.
            let inside = unsafe { &mut *Arc::as_ptr(state).cast_mut() };
            change(inside);
        } else {
            self.0 = None;
            change(Arc::make_mut(state));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;

    #[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Count {
        n: u32,
    }

    #[test]
    fn a_state_is_changed_in_place_only_while_nobody_else_holds_it() {
        let mut state = Arc::new(Count { n: 1 });
        let mut twin = Twin::new();
        let place = Arc::as_ptr(&state);

        // Lent and given back: in place.
        let lent = twin.lend(&state);
        twin.take_back(Some(lent));
        twin.change(&mut state, |count| count.n += 1);
        assert_eq!((state.n, Arc::as_ptr(&state)), (2, place));

        // The same twin serves again.
        let lent = twin.lend(&state);
        assert_eq!(Arc::strong_count(&state), 2);

        // A view that is kept sees what it saw; the state moves on in a clone.
        let kept = View::new(Arc::clone(&lent));
        twin.take_back(Some(lent));
        twin.change(&mut state, |count| count.n += 1);
        assert_eq!((kept.n, state.n), (2, 3));
        assert_ne!(Arc::as_ptr(&state), place);

        // A handle to another state is no twin.
        twin.take_back(Some(Arc::new(Count { n: 9 })));
        let lent = twin.lend(&state);
        assert_eq!(lent.n, 3);

        // Not given back: one clone.
        let before = Arc::as_ptr(&state);
        twin.change(&mut state, |count| count.n += 1);
        assert_eq!((lent.n, state.n), (3, 4));
        assert_ne!(Arc::as_ptr(&state), before);
    }

    #[test]
    fn a_handle_to_another_state_proves_nothing() {
        let mut state = Arc::new(Count { n: 1 });
        let kept = View::new(Arc::clone(&state));
        let mut twin = Twin::new();
        twin.take_back(Some(Arc::new(Count { n: 1 })));
        // Two handles, but the second is a view's.
        twin.change(&mut state, |count| count.n += 1);
        assert_eq!((kept.n, state.n), (1, 2));
    }

    #[test]
    fn views_dropped_on_other_threads_leave_the_state_alone() {
        let mut state = Arc::new(Count { n: 0 });
        let mut twin = Twin::new();
        for n in 0..200 {
            let view = View::new(twin.lend(&state));
            let other = std::thread::spawn(move || {
                let seen = view.n;
                drop(view);
                seen
            });
            twin.take_back(None);
            twin.change(&mut state, |count| count.n += 1);
            assert_eq!(other.join().unwrap(), n);
        }
        assert_eq!(state.n, 200);
    }
}
