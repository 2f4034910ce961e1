use std::future::Future;
use std::sync::Arc;

use crate::context::Context;
use crate::question::Question;
use crate::state::State;

use super::body::BoxFuture;
use super::cx::CxParts;
use super::each::EachBody;
use super::effects::Asked;
use super::interrupt::{Answer, Answered};
use super::{Cx, Handler, StepError, StepResult, View};

/// The body of a step, with its types erased.
pub(crate) enum Action<C: Context, S: State> {
    Run(RunBody<C, S>),
    Decide,
    Ask(AskHalf<C, S>),
    Each(EachBody<C, S>),
}

/// The first half of a gate, which asks. The second half receives the answer.
pub(crate) struct AskHalf<C: Context, S: State> {
    pub(crate) ask: AskBody<C, S>,
    pub(crate) answer: AnswerBody<C, S>,
}

type RunBody<C, S> = Box<dyn Fn(View<S>, CxParts<'_, C>) -> BoxFuture<StepResult<S>> + Send + Sync>;
type AskBody<C, S> =
    Box<dyn Fn(View<S>, Cx<C>) -> BoxFuture<Result<Asked, StepError>> + Send + Sync>;
type AnswerBody<C, S> = Box<
    dyn Fn(View<S>, Cx<C>, serde_json::Value, Answer) -> BoxFuture<StepResult<S>> + Send + Sync,
>;

/// Reads the state and returns the index of a signal.
pub(crate) type Route<S> = Box<dyn Fn(&S) -> usize + Send + Sync>;

impl<C: Context, S: State> Action<C, S> {
    pub(crate) fn run<F, Fut>(body: F) -> Self
    where
        F: Fn(View<S>, Cx<C>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = StepResult<S>> + Send + 'static,
    {
        Self::Run(Box::new(move |state, lent| {
            // The future is written where it stays, and its `Cx` is copied inside: a processor stalls when it
            // copies at once what was written in smaller parts, which took a sixth of an empty step.
            let room = Box::<Fut>::new_uninit();
            let future = Box::write(room, body(state, lent.cx()));
            Box::into_pin(future as Box<dyn Future<Output = StepResult<S>> + Send>)
        }))
    }

    pub(crate) fn handler(handler: impl Handler<C, S>) -> Self {
        let handler = Arc::new(handler);
        Self::run(move |state, cx| {
            let handler = Arc::clone(&handler);
            async move { handler.run(state, cx).await }
        })
    }

    pub(crate) fn ask<Q, A, AFut, B, BFut>(ask: A, answer: B) -> Self
    where
        Q: Question,
        A: Fn(View<S>, Cx<C>) -> AFut + Send + Sync + 'static,
        AFut: Future<Output = Result<Q, StepError>> + Send + 'static,
        B: Fn(View<S>, Cx<C>, Answered<Q>) -> BFut + Send + Sync + 'static,
        BFut: Future<Output = StepResult<S>> + Send + 'static,
    {
        let answer = Arc::new(answer);
        Self::Ask(AskHalf {
            ask: Box::new(move |state, cx| {
                let question = ask(state, cx);
                Box::pin(async move { Asked::new(&question.await?).map_err(StepError::fatal) })
            }),
            answer: Box::new(move |state, cx, question, answered| {
                let answer = Arc::clone(&answer);
                Box::pin(async move {
                    let answered = Answered::<Q>::decode(&question, answered)?;
                    answer(state, cx, answered).await
                })
            }),
        })
    }
}
