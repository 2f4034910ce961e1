use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::llm::Advice;
use crate::question::Question;

use super::effects::{AskReply, Asked};
use super::scope::Scope;

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
}

impl<Q: Question> Future for Ask<Q> {
    type Output = Result<Q::Answer, AskError>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
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
        let reply = self.scope.effects.ask(self.scope.place, &self.key, asked);
        match reply {
            AskReply::Answered(answer) => {
                let decoded = answer.value.and_then(|value| {
                    serde::Deserialize::deserialize(value)
                        .map_err(|e: serde_json::Error| e.to_string())
                });
                Poll::Ready(decoded.map_err(|why| AskError::of(&self.key, Kind::Decode(why))))
            }
            AskReply::Expired => Poll::Ready(Err(AskError::of(&self.key, Kind::Expired))),
            AskReply::KeyReused => Poll::Ready(Err(AskError::of(&self.key, Kind::KeyReused))),
            AskReply::Waits | AskReply::Stale => {
                self.state = AskState::Waiting;
                Poll::Pending
            }
        }
    }
}

impl<Q> fmt::Debug for Ask<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask").field("key", &self.key).finish_non_exhaustive()
    }
}

/// An inline question that cannot be asked, that expired, or whose answer does not decode. A retry
/// does not help: `?` converts it to a fatal error.
#[derive(Debug)]
pub struct AskError {
    key: String,
    kind: Kind,
    advice: Advice,
}

#[derive(Debug)]
enum Kind {
    KeyReused,
    Expired,
    Encode(String),
    Decode(String),
}

impl AskError {
    fn of(key: &str, kind: Kind) -> Self {
        Self { key: key.to_owned(), kind, advice: Advice::give_up() }
    }

    /// Whether the key was used twice in one attempt.
    pub fn is_key_reused(&self) -> bool {
        matches!(self.kind, Kind::KeyReused)
    }

    /// Whether the question expired before it was answered.
    pub fn is_expired(&self) -> bool {
        matches!(self.kind, Kind::Expired)
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.kind {
            Kind::KeyReused => write!(
                f,
                "the key `{key}` is used twice in one attempt (give every question of a step its own \
                 key)"
            ),
            Kind::Expired => write!(f, "the question `{key}` expired before it was answered"),
            Kind::Encode(why) => f.write_str(why),
            Kind::Decode(why) => write!(f, "failed to decode the answer to `{key}`: {why}"),
        }
    }
}

impl std::error::Error for AskError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.advice)
    }
}
