//! One step alone.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, IntoFuture, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::Context;
use crate::id::{AgentId, Position, RunId, SessionId};
use crate::llm::Spend;
use crate::question::Question;
use crate::state::{Ops, State, fold, to_json};
use crate::step::{
    Cx, Effects, Failure, FailureKind, Handler, Ids, Interrupt, Payload, Scope, Shared, StepError,
    StepResult, View,
};
use crate::text::{listed, words};

use super::bench::{Bench, Seen, place};
use super::error::{Kind, TestError};
use super::script::{NoSlots, Said, Slots, Slotted, Who};

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Body<C, S> = Box<dyn FnOnce(View<S>, Cx<C>) -> Boxed<StepResult<S>> + Send>;

/// Tests one step: `body` is entered once, without a loop, a session or a store. Await it for what
/// the step did.
///
/// ```
/// # use harness::prelude::*;
/// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
/// # struct Order { total: u32, receipt: Option<String> }
/// # #[derive(Question, Serialize, Deserialize)] #[question(answer = bool)] struct Pay { total: u32 }
/// # async fn charge(total: u32) -> Result<String, std::io::Error> { Ok(format!("paid {total}")) }
/// use harness::testing;
///
/// async fn pay(order: View<Order>, cx: Cx<()>) -> StepResult<Order> {
///     let total = order.total;
///     if !cx.ask("pay", Pay { total }).await? {
///         return Err(StepError::fatal("not approved").code("denied"));
///     }
///     let receipt = cx.once("charge", async move || Ok(charge(total).await?)).await?;
///     Ok(Order::update().receipt(receipt))
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let order = Order { total: 40, ..Order::default() };
///
/// let paid = testing::step(pay).state(order.clone()).answer("pay", true).await?.done()?;
/// assert_eq!(paid.state.receipt.as_deref(), Some("paid 40"));
/// assert_eq!(paid.effects(), ["charge"]);
///
/// let denied = testing::step(pay).state(order.clone()).answer("pay", false).await?;
/// assert_eq!(denied.code(), Some("denied"));
///
/// let asked = testing::step(pay).state(order).await?;
/// assert_eq!(asked.question::<Pay>("pay").map(|ask| ask.total), Some(40));
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Effects (`cx.once`) really run. A question without a scripted answer ends the step there, as it
/// does in a run. A step of items, a gate, a retry and a time-out belong to the loop: see
/// [`run`](super::run()).
pub fn step<C, S, F, Fut>(body: F) -> StepTest<C, S>
where
    C: Context,
    S: State,
    F: FnOnce(View<S>, Cx<C>) -> Fut + Send + 'static,
    Fut: Future<Output = StepResult<S>> + Send + 'static,
{
    StepTest::new(Box::new(move |state, cx| Box::pin(body(state, cx))))
}

/// The same for a step that is a [`Handler`].
pub fn handler<C: Context, S: State>(handler: impl Handler<C, S>) -> StepTest<C, S> {
    StepTest::new(Box::new(move |state, cx| Box::pin(async move { handler.run(state, cx).await })))
}

/// A test of one step, made by [`step`]. Await it.
#[must_use = "a test runs when it is awaited"]
pub struct StepTest<C: Context, S: State, P = NoSlots> {
    body: Body<C, S>,
    state: S,
    slots: P,
    name: String,
    script: BTreeMap<String, Said>,
    failure: Option<StepError>,
    broken: Option<Kind>,
}

impl<C: Context, S: State> StepTest<C, S> {
    fn new(body: Body<C, S>) -> Self {
        Self {
            body,
            state: S::default(),
            slots: NoSlots(()),
            name: "step".to_owned(),
            script: BTreeMap::new(),
            failure: None,
            broken: None,
        }
    }

    /// The context of the step. One whose context is `()` needs none.
    pub fn slots(self, context: C) -> StepTest<C, S, Slots<C>> {
        let Self { body, state, name, script, failure, broken, .. } = self;
        StepTest { body, state, slots: Slots(context), name, script, failure, broken }
    }
}

impl<C: Context, S: State, P> StepTest<C, S, P> {
    /// The state that the step sees. The default is that of a new session.
    pub fn state(mut self, state: S) -> Self {
        self.state = state;
        self
    }

    /// The name of the step, which it reads as `cx.step()`.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The answer to the question that the step asks under `key`.
    pub fn answer(self, key: impl Into<String>, answer: impl Serialize) -> Self {
        let key = key.into();
        let said = Said::answer(&Who::key(&*key), &answer);
        self.say(key, said)
    }

    /// The question that the step asks under `key` expires.
    pub fn expire(self, key: impl Into<String>) -> Self {
        self.say(key.into(), Ok(Said::Nothing))
    }

    /// The failure that led to the step, which it reads as `cx.failure()`.
    pub fn after(mut self, failure: StepError) -> Self {
        self.failure = Some(failure);
        self
    }

    fn say(mut self, key: String, said: Result<Said, Kind>) -> Self {
        match said {
            Ok(said) => {
                self.script.insert(key, said);
            }
            Err(kind) => {
                self.broken.get_or_insert(kind);
            }
        }
        self
    }
}

impl<C: Context, S: State, P> fmt::Debug for StepTest<C, S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepTest").field("step", &self.name).finish_non_exhaustive()
    }
}

impl<C: Context, S: State, P: Slotted<C>> IntoFuture for StepTest<C, S, P> {
    type Output = Result<TestedStep<S>, TestError>;
    type IntoFuture = Boxed<Self::Output>;

    /// # Errors
    /// [`TestError`] if a scripted answer does not fit its question, or was not used.
    fn into_future(self) -> Self::IntoFuture {
        let Self { body, state, slots, name, script, failure, broken } = self;
        let context = slots.take();
        Box::pin(async move {
            match broken {
                Some(broken) => Err(broken.into()),
                None => enter(body, state, context, name, script, failure).await,
            }
        })
    }
}

async fn enter<C: Context, S: State>(
    body: Body<C, S>,
    state: S,
    context: C,
    name: String,
    script: BTreeMap<String, Said>,
    failure: Option<StepError>,
) -> Result<TestedStep<S>, TestError> {
    let ids = Ids {
        agent: AgentId::new("test"),
        session: SessionId::fresh(),
        run: RunId::fresh(),
        parent: None,
    };
    let failed = |error: &StepError| Failure::new(error, &name, Position(1), 1);
    let before = failure.map(|error| Arc::new(failed(&error)));
    let mut bench = Bench::new(ids, name.clone(), script);
    bench.failure = before;
    let bench = Arc::new(bench);
    let state = Arc::new(state);
    let polled = attempt(&bench, body, Arc::clone(&state), context).await;
    let mut state = Arc::try_unwrap(state).unwrap_or_else(|held| (*held).clone());
    let Seen { script, asked, open, misfit, effects, emitted, spent, .. } = bench.take();
    if let Some(misfit) = misfit {
        return Err(misfit.into());
    }
    let folded = match polled {
        // Nothing that it returned counts.
        _ if !open.is_empty() => Ok(()),
        Ok(update) => folded(&mut state, update),
        Err(error) => Err(error),
    };
    let failure = folded.err().as_ref().map(failed);
    let open = asked
        .iter()
        .enumerate()
        .filter(|(_, it)| it.key.as_ref().is_some_and(|key| open.contains(key)))
        .map(|(at, _)| at)
        .collect();
    let stepped = TestedStep { state, failure, asked, spent, open, effects, emitted };
    match script.is_empty() {
        true => Ok(stepped),
        false => {
            let answers = script.keys().map(|key| Who::key(&**key).to_string()).collect();
            Err(Kind::Unused { answers, after: stepped.ending() }.into())
        }
    }
}

/// Polls the body to its end, or until it asks something that has no answer.
async fn attempt<C: Context, S: State>(
    bench: &Arc<Bench>,
    body: Body<C, S>,
    state: Arc<S>,
    context: C,
) -> StepResult<S> {
    let effects: Arc<dyn Effects> = Arc::clone(bench) as _;
    let shared = Arc::new(Shared { context, effects: Arc::clone(&effects) });
    let cx = Cx::new(shared, place());
    let entered = async move { body(View::new(state), cx).await };
    let mut entered = Box::pin(Scope { effects, place: place() }.wrap(entered));
    let polled = poll_fn(|task| {
        let polled = catch_unwind(AssertUnwindSafe(|| entered.as_mut().poll(task)));
        if bench.waits(task.waker()) {
            return Poll::Ready(Err(StepError::fatal("it waits for an answer")));
        }
        polled.unwrap_or_else(|panic| {
            let why = format!("the step panicked: {}", words(&*panic));
            Poll::Ready(Err(StepError::of(FailureKind::Panic, false, why)))
        })
    });
    let polled = polled.await;
    // A body that is given up may panic: that changes nothing.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(entered)));
    bench.effects_over().await;
    polled
}

/// Folds an update into the state, and checks that the log would replay to the same.
fn folded<S: State>(state: &mut S, update: S::Update) -> Result<(), StepError> {
    let unencodable = |why: String| StepError::of(FailureKind::Encode, false, why);
    let mut replayed = to_json(state).map_err(|error| unencodable(error.to_string()))?;
    let mut ops = Ops::on();
    let mut next = state.clone();
    catch_unwind(AssertUnwindSafe(|| next.apply(update, &mut ops))).map_err(|panic| {
        let why = format!("a reducer panicked: {}", words(&*panic));
        StepError::of(FailureKind::ReducerPanic, false, why)
    })?;
    let ops = ops.finish().map_err(|error| StepError::unfolded(&error))?;
    let live = to_json(&next).map_err(|error| unencodable(error.to_string()))?;
    let differs = match fold(&mut replayed, &ops) {
        Ok(()) => S::schema().difference(&replayed, &live).map(|field| format!("`{field}`")),
        Err(error) => Some(error.to_string()),
    };
    if let Some(what) = differs {
        let why = format!("the operations that the reducers recorded do not replay: {what}");
        return Err(StepError::of(FailureKind::NotReplayable, false, why));
    }
    *state = next;
    Ok(())
}

/// What a step under test did.
#[non_exhaustive]
pub struct TestedStep<S> {
    /// The state with the update folded in; unchanged if the step failed or waits for an answer.
    pub state: S,
    /// Why the step failed, if it did.
    pub failure: Option<Failure>,
    /// Every question that it asked, in order.
    pub asked: Vec<Interrupt>,
    /// What it spent.
    pub spent: Spend,
    /// Which of the questions have no answer.
    open: Vec<usize>,
    effects: Vec<(String, Value)>,
    emitted: Vec<Arc<dyn Payload>>,
}

impl<S> TestedStep<S> {
    /// This, if the step is done.
    ///
    /// # Errors
    /// [`NotDone`] if it failed, or waits for an answer; it displays which.
    pub fn done(self) -> Result<Self, NotDone> {
        match self.failure.is_none() && self.open.is_empty() {
            true => Ok(self),
            false => Err(NotDone { ending: self.ending() }),
        }
    }

    /// The [code](StepError::code) of the failure, if there is one.
    pub fn code(&self) -> Option<&str> {
        self.failure.as_ref()?.code.as_deref()
    }

    /// The questions that have no answer.
    pub fn open(&self) -> impl Iterator<Item = &Interrupt> {
        self.open.iter().filter_map(|at| self.asked.get(*at))
    }

    /// The question that was asked under `key`, if it is a `Q`.
    pub fn question<Q: Question>(&self, key: &str) -> Option<Q> {
        let asked = self.asked.iter().find(|asked| asked.key.as_deref() == Some(key))?;
        asked.as_question().ok().map(|pending| pending.question)
    }

    /// The keys of the effects that ran and were recorded, in the order of their ends.
    pub fn effects(&self) -> Vec<&str> {
        self.effects.iter().map(|(key, _)| key.as_str()).collect()
    }

    /// The recorded result of an effect, if it is a `T`.
    pub fn effect<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let (_, value) = self.effects.iter().find(|(known, _)| known == key)?;
        T::deserialize(value).ok()
    }

    /// The `T`s that the step emitted, in order.
    pub fn emitted<T: Payload>(&self) -> Vec<&T> {
        let payloads = self.emitted.iter().map(|payload| &**payload as &dyn Any);
        payloads.filter_map(|payload| payload.downcast_ref()).collect()
    }

    fn ending(&self) -> String {
        let open: Vec<String> = self
            .open()
            .map(|it| format!("`{}` (`{}`)", it.key.as_deref().unwrap_or_default(), it.name))
            .collect();
        match &self.failure {
            Some(failure) => format!("the step failed: {failure:#}"),
            None if !open.is_empty() => {
                format!("the step waits for an answer to {}", listed(&open, ", "))
            }
            None if self.asked.is_empty() => "the step asked nothing".to_owned(),
            None => {
                let keys = self.asked.iter().filter_map(|it| it.key.as_deref());
                let keys: Vec<String> = keys.map(|key| format!("`{key}`")).collect();
                format!("the step asked only {}", listed(&keys, ", "))
            }
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for TestedStep<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestedStep")
            .field("state", &self.state)
            .field("failure", &self.failure)
            .field("asked", &self.asked)
            .field("effects", &self.effects)
            .field("emitted", &self.emitted)
            .field("spent", &self.spent)
            .finish()
    }
}

/// A step under test that failed, or waits for an answer.
#[derive(Clone, PartialEq, Eq)]
pub struct NotDone {
    ending: String,
}

impl fmt::Display for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.ending)
    }
}

impl fmt::Debug for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NotDone({self})")
    }
}

impl std::error::Error for NotDone {}
