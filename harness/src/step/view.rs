use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::state::State;

/// A cheap shared view of the state, as it was when the step was entered.
///
/// It dereferences to the state and never changes. The driver folds a step's update into the state in
/// place. A view that still exists then, for example in a spawned task, costs one clone of the state.
pub struct View<S: State> {
    state: Arc<S>,
}

impl<S: State> View<S> {
    pub(crate) fn new(state: Arc<S>) -> Self {
        Self { state }
    }
}

impl<S: State> Clone for View<S> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state) }
    }
}

impl<S: State> Deref for View<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.state
    }
}

impl<S: State + fmt::Debug> fmt::Debug for View<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<S: State + PartialEq> PartialEq<S> for View<S> {
    fn eq(&self, other: &S) -> bool {
        **self == *other
    }
}
