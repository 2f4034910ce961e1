use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::effects::{EffectScope, OnceReply};
use super::scope::Scope;
use super::{FailureKind, Fatal, StepError};

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
    match scope.effects.begin_once(scope.place, within, key) {
        OnceReply::Done(value) => T::deserialize(value).map_err(|e| {
            StepError::fatal(format!("the recorded result of `{key}` does not decode: {e}"))
        }),
        OnceReply::KeyReused => Err(StepError::fatal(format!(
            "the key `{key}` is used twice in one attempt (give every effect of a step its own key)"
        ))),
        OnceReply::Stale => Err(StepError::fatal(format!(
            "the effect `{key}` was started by a task whose step is over (await what a step spawns)"
        ))),
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
        self.close(Some(serde_json::to_value(&value).fatal()?));
        Ok(value)
    }

    fn close(&mut self, result: Option<Value>) {
        if std::mem::replace(&mut self.open, false) {
            self.scope.effects.end_once(self.scope.place, self.within, &self.key, result);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.close(None);
    }
}
