use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::state::encode;

use super::effects::{EffectScope, Guard, OnceReply};
use super::scope::Scope;
use super::{FailureKind, StepError};

/// Runs an effect unless its result is already recorded. See [`Cx::once`](crate::Cx::once).
pub(crate) async fn run<T, F, Fut>(
    scope: Scope,
    within: EffectScope,
    key: &str,
    effect: F,
) -> Result<T, StepError>
where
    T: Serialize + DeserializeOwned + Send + 'static,
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future<Output = Result<T, StepError>> + Send + 'static,
{
    match scope.effects.begin_once(scope.place, within, key, Guard::AtLeastOnce) {
        OnceReply::Done(value) => T::deserialize(value).map_err(|e| {
            StepError::fatal(format!("the recorded result of `{key}` does not decode: {e}"))
        }),
        OnceReply::KeyReused => Err(StepError::fatal(format!(
            "the key `{key}` is used twice in one attempt (give every effect of a step its own key)"
        ))),
        OnceReply::Stale => Err(StepError::fatal(format!(
            "the effect `{key}` was started by a task whose step is over (await what a step spawns)"
        ))),
        OnceReply::InDoubt => Err(in_doubt(&scope, key)),
        OnceReply::Refused(error) => Err(error),
        OnceReply::Run => {
            let ticket = Ticket { scope: scope.clone(), within, key: key.to_owned(), open: true };
            // A task of its own, so that dropping the step never drops an effect half-way.
            let task = tokio::spawn(scope.wrap(async move { ticket.run(effect).await }));
            match task.await {
                Ok(result) => result,
                Err(_) => {
                    Err(StepError::fatal(format!("the effect `{key}` was aborted by the runtime")))
                }
            }
        }
    }
}

/// An effect that was begun: says how it ended, whatever happens.
struct Ticket {
    scope: Scope,
    within: EffectScope,
    key: String,
    open: bool,
}

impl Ticket {
    async fn run<T, F, Fut>(mut self, effect: F) -> Result<T, StepError>
    where
        T: Serialize,
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, StepError>>,
    {
        let outcome = AssertUnwindSafe(async { effect().await }).catch_unwind().await;
        let value = match outcome {
            Ok(result) => result?,
            Err(_) => {
                let message = format!("the effect `{}` panicked", self.key);
                return Err(StepError::of(FailureKind::Panic, false, message));
            }
        };
        let encoded = encode(&value).map_err(|error| {
            let message = format!("the result of the effect `{}`: {error}", self.key);
            StepError::of(FailureKind::Encode, false, message)
        })?;
        let Scope { effects, place } = &self.scope;
        let ended = effects.end_once(*place, self.within, &self.key, encoded).await;
        self.open = false;
        ended.map(|()| value)
    }
}

fn in_doubt(scope: &Scope, key: &str) -> StepError {
    let op = scope.op_id();
    let message = format!(
        "nobody knows whether the effect `{key}` of {op} happened: it was about to, and left no \
         result (look for {op} where it acts)"
    );
    StepError::of(FailureKind::InDoubt, false, message)
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.open {
            self.scope.effects.drop_once(self.scope.place, self.within, &self.key);
        }
    }
}
