//! Effects on external systems that must not be repeated.

mod doubt;
mod ticket;

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::state::{Stored, of_json};
use crate::store::FormerHolder;

use super::StepError;
use super::effects::{EffectScope, Guard, OnceReply};
use super::scope::Scope;

use ticket::Ticket;

/// An effect that runs unless its result is recorded. [`Cx::once`](crate::Cx::once) and
/// [`Cx::once_per_session`](crate::Cx::once_per_session) create it, and awaiting it starts it.
///
/// The result is recorded when the effect has finished. If the process dies *between* the two,
/// there is no record, so the next attempt runs the effect again, under the same
/// [`op_id`](crate::Cx::op_id). This is correct for effects that are idempotent or take an
/// idempotency key.
///
/// For other effects, [`at_most_once`](Once::at_most_once) records an *intent* before the effect. An
/// intent without a result leaves the effect *in doubt*: it may or may not have happened.
/// [`in_doubt`](Once::in_doubt) or [`probe`](Once::probe) decides what to do then.
///
/// ```
/// use harness::step::InDoubt;
/// # use harness::prelude::*;
/// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Order { receipt: Option<String> }
/// # #[derive(Clone)] struct Bank;
/// # impl Bank {
/// #     async fn pay(&self, _key: &str) -> Result<String, std::io::Error> { Ok("r-1".into()) }
/// #     async fn find(&self, _key: &str) -> Result<Option<String>, std::io::Error> { Ok(None) }
/// # }
/// # #[derive(Context)] struct Ctx { bank: Bank }
/// async fn pay(_order: View<Order>, cx: Cx<Ctx>) -> StepResult<Order> {
///     let (key, bank) = (cx.op_id().to_string(), cx.bank.clone());
///     let (same, at) = (key.clone(), bank.clone());
///     let receipt = cx
///         .once("pay", async move || Ok(bank.pay(&key).await?))
///         .at_most_once()
///         .probe(async move || Ok(at.find(&same).await?))
///         .await?;
///
///     let note = async || Ok(println!("thank you"));
///     cx.once("note", note).in_doubt(InDoubt::Retry).await?;
///     Ok(Order::update().receipt(Some(receipt)))
/// }
/// ```
///
/// `D` is [`Decided`] once `in_doubt` or `probe` has been called, which can be done once.
#[must_use = "an effect runs when it is awaited"]
pub struct Once<T, F, D = Undecided> {
    key: String,
    stage: Stage<T, F>,
    decided: PhantomData<fn() -> D>,
}

/// No policy is set for an effect in doubt: it fails the step.
#[derive(Debug)]
pub enum Undecided {}

/// A policy is set for an effect in doubt.
#[derive(Debug)]
pub enum Decided {}

/// What to do with an effect in doubt: it is unknown whether it happened. See [`Once`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InDoubt {
    /// The step fails without a retry, with [`FailureKind::InDoubt`](crate::FailureKind::InDoubt).
    #[default]
    Fail,
    /// The effect runs again.
    Retry,
    /// The step asks a person: [`EffectInDoubt`](crate::question::EffectInDoubt).
    Ask,
}

type Probe<T> = Box<dyn FnOnce() -> BoxFuture<'static, Result<Option<T>, StepError>> + Send>;

enum Decision<T> {
    Plain(InDoubt),
    Probe(Probe<T>),
}

struct Plan<T, F> {
    scope: Scope,
    within: EffectScope,
    effect: F,
    guard: Guard,
    decision: Decision<T>,
    /// How long the effect may take.
    limit: Option<Duration>,
}

enum Stage<T, F> {
    Planned(Plan<T, F>),
    AtWork(BoxFuture<'static, Result<T, StepError>>),
    /// Finished, or being moved from one stage to the next.
    Over,
}

impl<T, F> Once<T, F> {
    pub(crate) fn new(scope: Scope, within: EffectScope, key: &str, effect: F) -> Self {
        let decision = Decision::Plain(InDoubt::default());
        let plan = Plan { scope, within, effect, guard: Guard::AtLeastOnce, decision, limit: None };
        Self { key: key.to_owned(), stage: Stage::Planned(plan), decided: PhantomData }
    }

    /// Sets what to do in doubt. The default is to fail. The effect then runs
    /// [at most once](Once::at_most_once).
    pub fn in_doubt(self, policy: InDoubt) -> Once<T, F, Decided> {
        self.decide(Decision::Plain(policy))
    }

    /// Sets a function that checks, in doubt, whether the effect happened, for example by its
    /// [`op_id`](crate::Cx::op_id). `Some(result)` is recorded as its result; after `None` the effect
    /// runs. The effect then runs [at most once](Once::at_most_once). A probe that fails leaves the
    /// effect in doubt, and fails the step like any other error.
    pub fn probe<P, Fut>(self, probe: P) -> Once<T, F, Decided>
    where
        P: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<Option<T>, StepError>> + Send + 'static,
    {
        self.decide(Decision::Probe(Box::new(move || probe().boxed())))
    }

    fn decide(self, decision: Decision<T>) -> Once<T, F, Decided> {
        let stage = match self.stage {
            Stage::Planned(plan) => Stage::Planned(Plan { decision, ..plan }),
            other => other,
        };
        Once { key: self.key, stage, decided: PhantomData }.at_most_once()
    }
}

impl<T, F, D> Once<T, F, D> {
    /// Records an intent before the effect, so that it never runs a second time unless the policy for
    /// doubt allows it.
    ///
    /// An effect that fails or panics also leaves its intent, because an error does not show what
    /// happened before it: the next attempt of the step is in doubt. An error that is
    /// [not done](StepError::not_done) takes the intent back.
    pub fn at_most_once(mut self) -> Self {
        if let Stage::Planned(plan) = &mut self.stage {
            plan.guard = Guard::AtMostOnce;
        }
        self
    }

    /// Bounds how long the effect may take. It is then dropped, and fails the step with
    /// [`FailureKind::Timeout`](crate::FailureKind::Timeout), which a retry may fix. Whether it
    /// happened is not known: it leaves its intent, if it has one.
    ///
    /// Without a bound an effect is waited for, whatever else ends the step: a time-out, the wall
    /// budget and a cancel do not drop it half-way.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use harness::prelude::*;
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Page { text: String }
    /// # async fn get(_url: &str) -> Result<String, std::io::Error> { Ok(String::new()) }
    /// async fn fetch(_page: View<Page>, cx: Cx<()>) -> StepResult<Page> {
    ///     let get = async || Ok(get("https://example.org").await?);
    ///     let text = cx.once("get", get).within(Duration::from_secs(30)).await?;
    ///     Ok(Page::update().text(text))
    /// }
    /// ```
    pub fn within(mut self, limit: Duration) -> Self {
        if let Stage::Planned(plan) = &mut self.stage {
            plan.limit = Some(limit);
        }
        self
    }
}

impl<T, F, Fut, D> Future for Once<T, F, D>
where
    T: Stored + Send + 'static,
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future<Output = Result<T, StepError>> + Send + 'static,
{
    type Output = Result<T, StepError>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        if let Stage::Planned(_) = self.stage
            && let Stage::Planned(plan) = std::mem::replace(&mut self.stage, Stage::Over)
        {
            let key = std::mem::take(&mut self.key);
            self.stage = Stage::AtWork(plan.perform(key).boxed());
        }
        let Stage::AtWork(work) = &mut self.stage else {
            return Poll::Pending;
        };
        let ended = work.as_mut().poll(task);
        if ended.is_ready() {
            self.stage = Stage::Over;
        }
        ended
    }
}

// The polled future is boxed; no other field is pinned.
impl<T, F, D> Unpin for Once<T, F, D> {}

impl<T, F, D> fmt::Debug for Once<T, F, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("key", &self.key).finish_non_exhaustive()
    }
}

/// What the executor lets the effect do.
enum Leave {
    Recorded(Value),
    Run,
    InDoubt(FormerHolder),
}

/// Asks until no other item runs the effect.
async fn free(scope: &Scope, ask: impl Fn() -> OnceReply) -> OnceReply {
    loop {
        let ended = scope.effects.effect_ended();
        match ask() {
            OnceReply::AtWork => ended.await,
            reply => return reply,
        }
    }
}

fn leave(reply: OnceReply, key: &str) -> Result<Leave, StepError> {
    match reply {
        OnceReply::Done(value) => Ok(Leave::Recorded(value)),
        OnceReply::Run => Ok(Leave::Run),
        OnceReply::InDoubt(former) => Ok(Leave::InDoubt(former)),
        OnceReply::Refused(error) => Err(error),
        // Asked again until it is not.
        OnceReply::AtWork => Ok(Leave::InDoubt(FormerHolder::Unknown)),
        OnceReply::KeyReused => Err(StepError::fatal(format!(
            "the key `{key}` is used twice in one attempt (give every effect of a step its own key)"
        ))),
        OnceReply::Stale => Err(StepError::fatal(format!(
            "the effect `{key}` was started by a task of a finished step (await what a step spawns)"
        ))),
    }
}

fn decoded<T: Stored>(value: Value, key: &str) -> Result<T, StepError> {
    of_json(value).map_err(|e| {
        StepError::fatal(format!("failed to decode the recorded result of `{key}`: {e}"))
    })
}

/// Whether the result of an effect is recorded. Does not use the key.
pub(super) fn is_recorded(scope: &Scope, key: &str) -> bool {
    scope.effects.recorded(scope.place, EffectScope::Position, key).is_some()
}

/// The recorded result of an effect, if there is one.
pub(super) fn recorded<T: Stored>(scope: &Scope, key: &str) -> Result<Option<T>, StepError> {
    let within = EffectScope::Position;
    if !is_recorded(scope, key) {
        return Ok(None);
    }
    // Uses the key.
    match leave(scope.effects.begin_once(scope.place, within, key, Guard::AtLeastOnce), key)? {
        Leave::Recorded(value) => decoded(value, key).map(Some),
        Leave::Run => {
            drop(Ticket::new(scope, within, key));
            Ok(None)
        }
        Leave::InDoubt(_) => Ok(None),
    }
}

/// Records the result of an effect that has happened.
pub(super) async fn record<T>(scope: &Scope, key: &str, value: T) -> Result<T, StepError>
where
    T: Stored + Send + 'static,
{
    let within = EffectScope::Position;
    match leave(scope.effects.begin_once(scope.place, within, key, Guard::AtLeastOnce), key)? {
        Leave::Recorded(value) => decoded(value, key),
        Leave::Run => Ticket::new(scope, within, key).record(value).await,
        Leave::InDoubt(former) => Err(doubt::unknown(scope, key, former)),
    }
}

impl<T, F, Fut> Plan<T, F>
where
    T: Stored + Send + 'static,
    F: FnOnce() -> Fut + Send + 'static,
    Fut: Future<Output = Result<T, StepError>> + Send + 'static,
{
    async fn perform(self, key: String) -> Result<T, StepError> {
        let Self { scope, within, effect, guard, decision, limit } = self;
        let ask = || scope.effects.begin_once(scope.place, within, &key, guard);
        match leave(free(&scope, ask).await, &key)? {
            Leave::Recorded(value) => decoded(value, &key),
            Leave::Run => Ticket::new(&scope, within, &key).run(guard, limit, effect).await,
            Leave::InDoubt(former) => {
                let happened = doubt::settle(&scope, within, &key, decision, former).await?;
                let ask = || scope.effects.retry_once(scope.place, within, &key);
                let ticket = match leave(free(&scope, ask).await, &key)? {
                    Leave::Recorded(value) => return decoded(value, &key),
                    Leave::InDoubt(former) => return Err(doubt::unknown(&scope, &key, former)),
                    Leave::Run => Ticket::new(&scope, within, &key),
                };
                match happened {
                    Some(value) => ticket.record(value).await,
                    None => ticket.run(guard, limit, effect).await,
                }
            }
        }
    }
}
