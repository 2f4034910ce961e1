//! Steps that work on a part of the state: those of a nested loop with a state of its own.

use std::sync::Arc;

use crate::context::Context;
use crate::state::State;

use super::view::Read;
use super::{Action, AskHalf, EachBody, Route, StepResult};

/// How a nested loop on `T` reads and changes its part of the state `S`.
pub(crate) struct Lens<S: State, T: State> {
    pub(crate) read: Read<S, T>,
    pub(crate) change: Arc<dyn Fn(T::Update) -> S::Update + Send + Sync>,
}

impl<S: State, T: State> Lens<S, T> {
    fn change(&self, result: StepResult<T>) -> StepResult<S> {
        result.map(|update| (self.change)(update))
    }

    /// The same action on the whole state.
    pub(crate) fn action<C: Context>(&self, action: Action<C, T>) -> Action<C, S> {
        match action {
            Action::Decide => Action::Decide,
            Action::Run(body) => {
                let lens = self.clone();
                Action::Run(Box::new(move |state, lent| {
                    let (lens, ran) = (lens.clone(), body(state.part(&lens.read), lent));
                    Box::pin(async move { lens.change(ran.await) })
                }))
            }
            Action::Ask(AskHalf { ask, answer }) => {
                let (read, lens) = (Arc::clone(&self.read), self.clone());
                Action::Ask(AskHalf {
                    ask: Box::new(move |state, cx| ask(state.part(&read), cx)),
                    answer: Box::new(move |state, cx, question, said| {
                        let ran = answer(state.part(&lens.read), cx, question, said);
                        let lens = lens.clone();
                        Box::pin(async move { lens.change(ran.await) })
                    }),
                })
            }
            Action::Each(EachBody { plan, run, fold, key, concurrency, collects }) => {
                let [of_plan, of_run] = [Arc::clone(&self.read), Arc::clone(&self.read)];
                let lens = self.clone();
                Action::Each(EachBody {
                    plan: Box::new(move |state, cx| plan(state.part(&of_plan), cx)),
                    run: Arc::new(move |item, state, cx| run(item, state.part(&of_run), cx)),
                    fold: Box::new(move |state, ends| {
                        let updates = fold(state.part(&lens.read), ends)?;
                        Ok(updates.into_iter().map(|update| (lens.change)(update)).collect())
                    }),
                    key,
                    concurrency,
                    collects,
                })
            }
        }
    }

    /// The same route on the whole state.
    pub(crate) fn route(&self, route: Route<T>) -> Route<S> {
        let read = Arc::clone(&self.read);
        Box::new(move |state| route(read(state)))
    }
}

impl<S: State, T: State> Clone for Lens<S, T> {
    fn clone(&self) -> Self {
        Self { read: Arc::clone(&self.read), change: Arc::clone(&self.change) }
    }
}
