//! A whole loop, with scripted answers.

use std::fmt;
use std::future::IntoFuture;
use std::pin::Pin;

use serde::Serialize;

use crate::agent::Agent;
use crate::clock::UtcMillis;
use crate::context::Context;
use crate::observe::{Event, EventKind, Recorder};
use crate::question::Question;
use crate::run::{Ended, NotEnded, Outcome, RunError, RunRequest};
use crate::state::State;
use crate::step::{Answers, Interrupt, Payload, StepId};
use crate::text::listed;

use super::error::{Kind, TestError};
use super::script::{NoSlots, Said, Script, Who};

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Configure<S> = Box<dyn Fn(RunRequest<S>) -> RunRequest<S> + Send>;

/// Tests a whole loop: runs it with `input`, resumes it with the scripted answers as long as it asks,
/// and gives the outcome with a trace of what happened. It works with a store and without one. Where
/// the loop waits for a timer the test does, too, which takes no time where the time of the runtime is
/// paused.
///
/// ```
/// # use harness::prelude::*;
/// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
/// # struct Order { total: u32, sent: bool }
/// # #[derive(Question, Serialize, Deserialize)] #[question(answer = bool)] struct Approve { total: u32 }
/// # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Approval, Send }
/// # #[derive(Signal, Clone, Copy, Debug)] enum Said { Yes, No }
/// # async fn send(_: View<Order>, _: Cx<()>) -> StepResult<Order> { Ok(Order::update().sent(true)) }
/// # let orders = Harness::<(), Order>::builder("orders").start(Step::Approval)
/// #     .steps(|define, step| match step {
/// #         Step::Approval => define
/// #             .ask(|order, _cx| async move { Ok(Approve { total: order.total }) })
/// #             .answer(|_order, _cx, said| async move { Ok(Order::update().sent(said.answer)) })
/// #             .route(|order| if order.sent { Said::Yes } else { Said::No }, |said| match said {
/// #                 Said::Yes => to(Step::Send),
/// #                 Said::No => end(),
/// #             }),
/// #         Step::Send => define.run(send).end(),
/// #     }).build()?;
/// # let agent = orders.agent("orders", ());
/// use harness::testing;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let sent = testing::run(&agent, Order::update().total(40)).answer(Step::Approval, true).await?;
/// assert_eq!(sent.steps(), ["Approval", "Send"]);
/// assert_eq!(sent.signals(), ["Yes"]);
/// assert!(sent.ended()?.state.sent);
///
/// // Without an answer it ends as interrupted.
/// let asked = testing::run(&agent, Order::update().total(40)).await?;
/// assert_eq!(asked.questions::<Approve>()[0].total, 40);
/// assert!(asked.ended().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Each answer is used once, for the first open question that it is for, in the order in which they
/// are scripted. An answer that is not used is an error, so that a test does not pass by a slip.
pub fn run<C: Context, S: State>(agent: &Agent<C, S>, input: S::Update) -> LoopTest<C, S> {
    LoopTest {
        agent: agent.clone(),
        input,
        slots: NoSlots(()),
        script: Script::default(),
        configure: Box::new(|request| request),
    }
}

/// A test of a loop, made by [`run()`]. Await it.
#[must_use = "a test runs when it is awaited"]
pub struct LoopTest<C: Context, S: State, P = NoSlots> {
    agent: Agent<C, S>,
    input: S::Update,
    slots: P,
    script: Script,
    configure: Configure<S>,
}

impl<C: Context, S: State> LoopTest<C, S> {
    /// Makes the runtime slots of a run. A loop that asks is run several times: once, and once more
    /// for each time that it is resumed. A loop without runtime slots needs none.
    pub fn slots<F>(self, slots: F) -> LoopTest<C, S, RunSlots<F>>
    where
        F: Fn() -> C::Runtime + Send + 'static,
    {
        let Self { agent, input, script, configure, .. } = self;
        LoopTest { agent, input, slots: RunSlots(slots), script, configure }
    }
}

impl<C: Context, S: State, P> LoopTest<C, S, P> {
    /// The answer to a question: of the key of an inline question, or of the step of a gate.
    pub fn answer(self, who: impl Into<Who>, answer: impl Serialize) -> Self {
        let who = who.into();
        let said = Said::answer(&who, &answer);
        self.say(who, said)
    }

    /// The answer to the question of one item of a step that has items, numbered from 0.
    pub fn answer_item(self, item: u32, who: impl Into<Who>, answer: impl Serialize) -> Self {
        let who = who.into().of_item(item);
        let said = Said::answer(&who, &answer);
        self.say(who, said)
    }

    /// The answer to every question of a type, at every step: `|ask: Approve| ask.total < 100`.
    /// Answers to one question go first.
    pub fn answer_all<Q: Question>(
        mut self,
        answer: impl Fn(Q) -> Q::Answer + Send + 'static,
    ) -> Self {
        self.script.reply(answer);
        self
    }

    /// The question gets no answer in time: the test waits until it has expired, which takes no time
    /// where the time of the runtime is paused.
    pub fn expire(self, who: impl Into<Who>) -> Self {
        self.say(who.into(), Ok(Said::Nothing))
    }

    /// Sets options of every run: `|run| run.session("s-1").budget(Budget::steps(5))`.
    pub fn with(
        mut self,
        configure: impl Fn(RunRequest<S>) -> RunRequest<S> + Send + 'static,
    ) -> Self {
        self.configure = Box::new(configure);
        self
    }

    fn say(mut self, who: Who, said: Result<Said, Kind>) -> Self {
        self.script.say(who, said);
        self
    }
}

impl<C: Context, S: State, P> fmt::Debug for LoopTest<C, S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopTest")
            .field("agent", &self.agent)
            .field("script", &self.script)
            .finish_non_exhaustive()
    }
}

/// Makes the runtime slots of the runs of a test.
pub struct RunSlots<F>(F);

impl<F> fmt::Debug for RunSlots<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunSlots")
    }
}

/// Where the runtime slots of the runs of a test come from.
#[diagnostic::on_unimplemented(
    message = "the runtime slots `{R}` are not given",
    label = "call `.slots(..)` before awaiting this test",
    note = "a test of a loop makes them for each run: `.slots(|| Ctx::runtime()..build())`"
)]
pub trait MakesSlots<R>: Send {
    #[doc(hidden)]
    fn make(&self) -> R;
}

impl MakesSlots<()> for NoSlots {
    fn make(&self) {}
}

impl<R, F: Fn() -> R + Send> MakesSlots<R> for RunSlots<F> {
    fn make(&self) -> R {
        (self.0)()
    }
}

impl<C, S, P> IntoFuture for LoopTest<C, S, P>
where
    C: Context,
    S: State,
    P: MakesSlots<C::Runtime> + 'static,
{
    type Output = Result<Tested<S>, TestError>;
    type IntoFuture = Boxed<Self::Output>;

    /// # Errors
    /// [`TestError`] if a scripted answer does not fit its question or was not used, and if a run does
    /// not begin.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(drive(self))
    }
}

async fn drive<C, S, P>(test: LoopTest<C, S, P>) -> Result<Tested<S>, TestError>
where
    C: Context,
    S: State,
    P: MakesSlots<C::Runtime>,
{
    let LoopTest { agent, input, slots, mut script, configure } = test;
    if let Some(broken) = script.broken.take() {
        return Err(broken.into());
    }
    let seen = Recorder::default();
    let run = configure(agent.run(input, slots.make())).observe(seen.clone());
    let mut outcome = run.await.map_err(Kind::Run)?;
    loop {
        let (answers, named) = match &outcome {
            Outcome::Interrupted(waiting) => {
                match replies(&mut script, &waiting.questions).await? {
                    Some(replies) => replies,
                    None => break,
                }
            }
            Outcome::Waiting(waiting) => {
                let Some(due) = waiting.until else { break };
                pass(due).await;
                (Answers::none(), Vec::new())
            }
            _ => break,
        };
        let run = configure(agent.resume(&outcome, answers, slots.make())).observe(seen.clone());
        outcome = run.await.map_err(|error| refused(error, named))?;
    }
    let tested = Tested { outcome, events: seen.events() };
    match script.unused() {
        unused if unused.is_empty() => Ok(tested),
        answers => Err(Kind::Unused { answers, after: tested.ending() }.into()),
    }
}

/// The answers that are scripted to open questions, with the name of who asks and the question of
/// each; none if the rest expires. `None` if nothing is scripted.
async fn replies(
    script: &mut Script,
    open: &[Interrupt],
) -> Result<Option<(Answers, Vec<Named>)>, Kind> {
    let (mut answers, mut named, mut due) = (Answers::none(), Vec::new(), None);
    for asked in open {
        match script.said_to(asked)? {
            Some((to, Said::Answer(value))) => {
                answers = answers.and(Answers::json(asked.id.as_str(), value));
                named.push(Named { id: asked.id.clone(), to, question: asked.name.clone() });
            }
            Some((to, Said::Nothing)) => {
                let expires = asked.expires_at.ok_or(Kind::NeverExpires { to })?;
                due = due.max(Some(expires));
            }
            None => {}
        }
    }
    if named.is_empty() && due.is_none() {
        return Ok(None);
    }
    if let Some(due) = due {
        pass(due).await;
    }
    Ok(Some((answers, named)))
}

/// Waits until then.
async fn pass(due: UtcMillis) {
    let left = due.0.saturating_sub(UtcMillis::now().0);
    tokio::time::sleep(std::time::Duration::from_millis(left)).await;
}

/// Who an answer is to.
struct Named {
    id: crate::id::InterruptId,
    to: String,
    question: String,
}

/// An answer of the script that is refused, or any other error.
fn refused(error: RunError, named: Vec<Named>) -> Kind {
    let wrong = error.answer_error().filter(|wrong| wrong.is_wrong_answer());
    let to = wrong.and_then(|wrong| named.into_iter().find(|it| it.id == *wrong.interrupt()));
    match (wrong, to) {
        (Some(wrong), Some(Named { to, question, .. })) => {
            Kind::Misfit { to, question, why: wrong.to_string() }
        }
        _ => Kind::Run(error),
    }
}

/// How a loop under test settled, and what happened on the way.
#[derive(Debug)]
#[non_exhaustive]
pub struct Tested<S: State> {
    /// How it settled.
    pub outcome: Outcome<S>,
    events: Vec<Event>,
}

impl<S: State> Tested<S> {
    /// The ended turn, as [`Outcome::ended`] gives it.
    ///
    /// # Errors
    /// [`NotEnded`], which displays how the loop settled instead: of an interrupted one, which
    /// questions had no answer.
    pub fn ended(self) -> Result<Ended<S>, NotEnded<S>> {
        self.outcome.ended()
    }

    /// The state as of the last commit; `None` if a panic of a reducer or a route lost it.
    pub fn state(&self) -> Option<&S> {
        self.outcome.state()
    }

    /// Every event of every run, in order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The events, each as one line.
    pub fn lines(&self) -> Vec<String> {
        self.events.iter().map(Event::to_string).collect()
    }

    /// The steps in the order in which they were entered. Retries, items and answers enter no step
    /// again. [`Drawing::mark`](crate::graph::Drawing::mark) takes them.
    pub fn steps(&self) -> Vec<&str> {
        let mut last = None;
        let entered = self.events.iter().filter(|it| matches!(it.kind, EventKind::StepStarted));
        entered
            .filter(|event| last.replace(event.position) != Some(event.position))
            .filter_map(|event| event.step.as_deref())
            .collect()
    }

    /// The same as steps of the loop's enum.
    pub fn steps_as<St: StepId>(&self) -> Vec<St> {
        let all = St::all();
        let steps = self.steps();
        steps.iter().filter_map(|name| all.iter().find(|it| it.name() == *name).cloned()).collect()
    }

    /// The signals that routes returned, in order.
    pub fn signals(&self) -> Vec<&str> {
        let signal = |event: &Event| match event.kind {
            EventKind::Committed { signal, .. } => signal,
            _ => None,
        };
        self.events.iter().filter_map(signal).collect()
    }

    /// Every question that was asked, in order.
    pub fn asked(&self) -> Vec<&Interrupt> {
        let interrupts = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::Asked { interrupt } => Some(interrupt),
            _ => None,
        });
        interrupts.collect()
    }

    /// The questions of a type that were asked, in order.
    pub fn questions<Q: Question>(&self) -> Vec<Q> {
        let asked = self.asked().into_iter();
        asked.filter_map(|it| it.as_question().ok()).map(|pending| pending.question).collect()
    }

    /// The `T`s that steps emitted, in order. An attempt that is repeated emits again.
    pub fn emitted<T: Payload>(&self) -> Vec<&T> {
        self.events.iter().filter_map(Event::custom).collect()
    }

    fn ending(&self) -> String {
        match &self.outcome {
            Outcome::Ended(_) => "the loop ended".to_owned(),
            Outcome::Interrupted(waiting) => {
                let asks = waiting.questions.iter().map(|it| match (&it.key, it.item) {
                    (Some(key), Some(item)) => format!("`{key}` of item {item}"),
                    (Some(key), None) => format!("`{key}`"),
                    (None, _) => format!("the gate `{}`", it.step),
                });
                let asks: Vec<String> = asks.collect();
                format!("the loop waits for an answer to {}", listed(&asks, ", "))
            }
            Outcome::Failed(failed) => format!("the loop failed: {:#}", failed.failure),
            Outcome::Exhausted(it) => format!("the loop used up its budget of {}", it.limit),
            Outcome::Stopped(_) => "the loop was stopped".to_owned(),
            Outcome::Waiting(_) => "the loop waits".to_owned(),
            Outcome::Queued(_) => "the input waits for another run".to_owned(),
        }
    }
}
