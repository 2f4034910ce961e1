//! Inline questions: asked in the middle of a step.

use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::Value;

use crate::question::Question;
use crate::state::of_json;
use crate::text::bounded;

use super::ask_error::{AskError, Kind};
use super::effects::{AskReply, Asked};
use super::error::StepError;
use super::interrupt::{Answer, Answered};
use super::scope::Scope;

/// How many bytes of a question an error shows.
const MAX_QUESTION: usize = 1024;

/// An inline question that waits for its answer. [`Cx::ask`](crate::Cx::ask) creates it.
#[must_use = "a question is asked when it is awaited"]
pub struct Ask<Q> {
    scope: Scope,
    key: String,
    state: AskState,
    question: PhantomData<fn() -> Q>,
}

enum AskState {
    Unasked(Result<Asked, String>),
    Waiting,
    Finished,
}

impl<Q: Question> Ask<Q> {
    pub(crate) fn new(scope: Scope, key: String, question: &Q) -> Self {
        let state = AskState::Unasked(Asked::new(question));
        Self { scope, key, state, question: PhantomData }
    }

    /// Sets how long the question waits for its answer. Then it resolves as an error that
    /// [is expired](AskError::is_expired). The time starts when the question is recorded, and runs
    /// while no process runs the session.
    ///
    /// Call it before the first poll of the question; later it has no effect.
    pub fn expires(mut self, after: Duration) -> Self {
        if let AskState::Unasked(Ok(asked)) = &mut self.state {
            asked.expires = Some(after);
        }
        self
    }

    /// Narrows what an answer may be: a JSON schema in place of the one of the answer's type. An answer
    /// that does not match is refused when it is given, in any process. What the schema accepts has to
    /// decode as the type.
    ///
    /// ```
    /// # use harness::prelude::*;
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    /// # struct Trip { seats: u8 }
    /// # #[derive(Question, Serialize, Deserialize)] #[question(answer = u8)] struct Seats { free: u8 }
    /// async fn book(_trip: View<Trip>, cx: Cx<()>) -> StepResult<Trip> {
    ///     let free = 3;
    ///     let few = serde_json::json!({"type": "integer", "minimum": 1, "maximum": free});
    ///     let seats = cx.ask("seats", Seats { free }).accepts(few).await?;
    ///     Ok(Trip::update().seats(seats))
    /// }
    /// ```
    ///
    /// Call it before the first poll of the question; later it has no effect.
    pub fn accepts(mut self, schema: Value) -> Self {
        if let AskState::Unasked(Ok(asked)) = &mut self.state {
            asked.answer_schema = schema;
        }
        self
    }

    /// Asks in the words of another question that has the same type of answer, for code that learns at
    /// run time what to ask: its [`NAME`](Question::NAME) and its JSON. The person sees only that
    /// question.
    ///
    /// Call it before the first poll of the question; later it has no effect.
    pub fn worded(mut self, name: &'static str, question: Value) -> Self {
        if let AskState::Unasked(Ok(asked)) = &mut self.state {
            (asked.name, asked.question) = (name, question);
        }
        self
    }

    /// The answer with who gave it and when, in place of the answer alone.
    ///
    /// ```
    /// # use harness::prelude::*;
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    /// # struct Notice { approved_by: Option<String> }
    /// # #[derive(Question, Serialize, Deserialize)] #[question(answer = bool)] struct Send { to: String }
    /// async fn send(_notice: View<Notice>, cx: Cx<()>) -> StepResult<Notice> {
    ///     let said = cx.ask("send", Send { to: "all".into() }).answered().await?;
    ///     Ok(Notice::update().approved_by(said.by.filter(|_| said.answer)))
    /// }
    /// ```
    ///
    /// # Errors
    /// As awaiting the question itself, and if the recorded question does not decode.
    pub fn answered(mut self) -> impl Future<Output = Result<Answered<Q>, AskError>> + Send {
        poll_fn(move |_| {
            self.poll_asked().map(|asked| {
                let (question, answer) = asked?;
                let failed =
                    |why: StepError| AskError::of(&self.key, Kind::Decode(why.to_string()));
                Answered::decode(&question, answer).map_err(failed)
            })
        })
    }

    /// The question as it was recorded, and its answer.
    fn poll_asked(&mut self) -> Poll<Result<(Value, Answer), AskError>> {
        let asked = match std::mem::replace(&mut self.state, AskState::Finished) {
            AskState::Unasked(Ok(asked)) => asked,
            AskState::Unasked(Err(why)) => {
                return Poll::Ready(Err(AskError::of(&self.key, Kind::Encode(why))));
            }
            // Nothing wakes this: the driver drops the step.
            AskState::Waiting | AskState::Finished => {
                self.state = AskState::Waiting;
                return Poll::Pending;
            }
        };
        let now = asked.question.clone();
        let reply = self.scope.effects.ask(self.scope.place, &self.key, asked);
        match reply {
            AskReply::Answered(answer) => Poll::Ready(Ok((now, answer))),
            AskReply::Expired => Poll::Ready(Err(AskError::of(&self.key, Kind::Expired))),
            AskReply::Changed(before) => {
                let [before, now] = [before, now].map(|it| bounded(it.to_string(), MAX_QUESTION));
                Poll::Ready(Err(AskError::of(&self.key, Kind::Changed { before, now })))
            }
            AskReply::KeyReused => Poll::Ready(Err(AskError::of(&self.key, Kind::KeyReused))),
            AskReply::Waits | AskReply::Stale => {
                self.state = AskState::Waiting;
                Poll::Pending
            }
        }
    }
}

impl<Q: Question> Future for Ask<Q> {
    type Output = Result<Q::Answer, AskError>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_asked().map(|asked| {
            let decoded = asked?
                .1
                .value
                .and_then(|value| of_json(value).map_err(|e: serde_json::Error| e.to_string()));
            decoded.map_err(|why| AskError::of(&self.key, Kind::Decode(why)))
        })
    }
}

impl<Q> fmt::Debug for Ask<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask").field("key", &self.key).finish_non_exhaustive()
    }
}
