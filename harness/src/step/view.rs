use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::state::State;

/// A cheap shared view of the state, as it was when the step was entered.
///
/// It dereferences to the state and never changes. The driver folds a step's update into the state in
/// place. A view that still exists then, for example in a spawned task, costs one clone of the state.
pub struct View<S: State> {
    state: Held<S>,
}

/// A state, or the part of another that a nested loop works on.
enum Held<S> {
    Whole(Arc<S>),
    Part(Arc<dyn Holds<S>>),
}

trait Holds<T>: Send + Sync {
    fn part(&self) -> &T;
}

/// Reads a part of a state.
pub(crate) type Read<S, T> = Arc<dyn Fn(&S) -> &T + Send + Sync>;

struct PartOf<S: State, T> {
    whole: View<S>,
    read: Read<S, T>,
}

impl<S: State, T> Holds<T> for PartOf<S, T> {
    fn part(&self) -> &T {
        (self.read)(&self.whole)
    }
}

impl<S: State> View<S> {
    pub(crate) fn new(state: Arc<S>) -> Self {
        Self { state: Held::Whole(state) }
    }

    /// The view of a part of this state. It costs no clone of either.
    pub(crate) fn part<T: State>(self, read: &Read<S, T>) -> View<T> {
        let part = PartOf { whole: self, read: Arc::clone(read) };
        View { state: Held::Part(Arc::new(part)) }
    }
}

impl<S: State> Clone for View<S> {
    fn clone(&self) -> Self {
        let state = match &self.state {
            Held::Whole(state) => Held::Whole(Arc::clone(state)),
            Held::Part(part) => Held::Part(Arc::clone(part)),
        };
        Self { state }
    }
}

impl<S: State> Deref for View<S> {
    type Target = S;

    #[inline]
    fn deref(&self) -> &S {
        match &self.state {
            Held::Whole(state) => state,
            Held::Part(part) => part.part(),
        }
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
