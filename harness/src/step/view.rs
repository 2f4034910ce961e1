use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A cheap shared view of the state, as it was when the step was entered.
///
/// It dereferences to the state and never changes under its holder. The executor folds a step's
/// update into the state in place; a view that is still held by then (in a spawned task, say)
/// costs one clone of the state.
pub struct View<S>(Arc<S>);

impl<S> View<S> {
    pub(crate) fn new(state: Arc<S>) -> Self {
        Self(state)
    }
}

impl<S> Clone for View<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> Deref for View<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

impl<S: fmt::Debug> fmt::Debug for View<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<S: PartialEq> PartialEq<S> for View<S> {
    fn eq(&self, other: &S) -> bool {
        *self.0 == *other
    }
}
