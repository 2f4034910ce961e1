//! A running effect, until it is recorded or ends without a result.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;

use serde_json::Value;

use crate::state::{Stored, to_json};
use crate::step::effects::{EffectScope, Guard};
use crate::step::scope::Scope;
use crate::step::{FailureKind, StepError};

/// An effect that has begun. It always reports how the effect ended.
///
/// The effect runs in a task of its own, so that dropping the step does not interrupt it.
pub(super) struct Ticket {
    scope: Scope,
    within: EffectScope,
    key: String,
    open: bool,
}

impl Ticket {
    pub(super) fn new(scope: &Scope, within: EffectScope, key: &str) -> Self {
        Self { scope: scope.clone(), within, key: key.to_owned(), open: true }
    }

    /// Runs the effect when everything before it is recorded, including an intent if the guard
    /// requires one, and records its result.
    pub(super) async fn run<T, F, Fut>(
        self,
        guard: Guard,
        limit: Option<Duration>,
        effect: F,
    ) -> Result<T, StepError>
    where
        T: Stored + Send + 'static,
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, StepError>> + Send + 'static,
    {
        let (Scope { effects, place }, within, key) =
            (self.scope.clone(), self.within, self.key.clone());
        let work = async move {
            effects.intend(place, within, &key, guard).await?;
            let effect = AssertUnwindSafe(async { effect().await }).catch_unwind();
            let ended = match limit {
                Some(limit) => tokio::time::timeout(limit, effect).await,
                None => Ok(effect.await),
            };
            match (ended, limit) {
                (Ok(Ok(Err(error))), _) if guard == Guard::AtMostOnce && error.is_not_done() => {
                    effects.take_back(place, within, &key).await?;
                    Err(error)
                }
                (Ok(Ok(result)), _) => result,
                (Ok(Err(_)), _) => {
                    let message = format!("the effect `{key}` panicked");
                    Err(StepError::of(FailureKind::Panic, false, message))
                }
                (Err(_), limit) => {
                    let limit = limit.unwrap_or_default();
                    let message = format!("the effect `{key}` took longer than its {limit:?}");
                    Err(StepError::of(FailureKind::Timeout, true, message))
                }
            }
        };
        self.recording(work).await
    }

    /// Records a result that a probe or an answer returned.
    pub(super) async fn record<T>(self, value: T) -> Result<T, StepError>
    where
        T: Stored + Send + 'static,
    {
        self.recording(async move { Ok(value) }).await
    }

    async fn recording<T, W>(self, work: W) -> Result<T, StepError>
    where
        T: Stored + Send + 'static,
        W: Future<Output = Result<T, StepError>> + Send + 'static,
    {
        let (scope, key) = (self.scope.clone(), self.key.clone());
        let mut ticket = self;
        let task = tokio::spawn(scope.wrap(async move {
            let value = work.await?;
            let encoded = ticket.encode(&value)?;
            ticket.close(encoded).await?;
            Ok(value)
        }));
        match task.await {
            Ok(result) => result,
            Err(_) => {
                Err(StepError::fatal(format!("the effect `{key}` was aborted by the runtime")))
            }
        }
    }

    fn encode<T: Stored>(&self, value: &T) -> Result<Value, StepError> {
        to_json(value).map_err(|error| {
            let message = format!("the result of the effect `{}`: {error}", self.key);
            StepError::of(FailureKind::Encode, false, message)
        })
    }

    async fn close(&mut self, value: Value) -> Result<(), StepError> {
        let Scope { effects, place } = &self.scope;
        let ended = effects.end_once(*place, self.within, &self.key, value).await;
        self.open = false;
        ended
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.open {
            self.scope.effects.drop_once(self.scope.place, self.within, &self.key);
        }
    }
}
