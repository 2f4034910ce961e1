use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::Location;

use crate::context::Context;
use crate::graph::{Kind, Target};
use crate::question::Question;
use crate::signal::Signal;
use crate::state::{State, Stored};
use crate::step::{Action, Cx, Handler, StepError, StepId, StepResult, View};

use super::About;
use super::each::NeedsItemBody;
use super::step::{NeedsAnswer, NeedsThenEndOrRoute, OfStep, StepDef};

/// Defines what a step does. The closure of `.steps(|define, step| ..)` receives one. It carries
/// the types of the loop's context and state, so closures need no annotations.
#[must_use = "define what the step does: `define.run(..)`, `.handler(..)`, `.decide(..)` or `.ask(..)`"]
pub struct Define<C, S, St> {
    types: About<(C, S, St)>,
}

impl<C: Context, S: State, St> Define<C, S, St> {
    pub(super) fn new() -> Self {
        Self { types: PhantomData }
    }

    /// A step that runs `body`: a named `async fn(View<S>, Cx<C>) -> StepResult<S>`, a closure that
    /// returns `async move { .. }`, or an async closure that captures nothing.
    #[track_caller]
    pub fn run<F, Fut>(self, body: F) -> NeedsThenEndOrRoute<C, S, St, OfStep>
    where
        F: Fn(View<S>, Cx<C>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = StepResult<S>> + Send + 'static,
    {
        NeedsThenEndOrRoute::new(Kind::Run, Action::run(body), Location::caller())
    }

    /// A step that runs a [`Handler`].
    #[track_caller]
    pub fn handler(self, handler: impl Handler<C, S>) -> NeedsThenEndOrRoute<C, S, St, OfStep> {
        NeedsThenEndOrRoute::new(Kind::Run, Action::handler(handler), Location::caller())
    }

    /// The first half of a gate. It creates the question, and the run waits for the answer. A half
    /// that is committed does not run again.
    ///
    /// ```
    /// use harness::prelude::*;
    ///
    /// #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    /// struct Order { total: u32, approved_by: Option<String> }
    ///
    /// #[derive(Question, Serialize, Deserialize)]
    /// #[question(answer = bool)]
    /// struct Approve { total: u32 }
    ///
    /// #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    /// enum Step { Approval }
    ///
    /// let harness = Harness::<(), Order>::builder("orders")
    ///     .start(Step::Approval)
    ///     .steps(|define, step| match step {
    ///         Step::Approval => define
    ///             .ask(|order, _cx| async move { Ok(Approve { total: order.total }) })
    ///             .answer(|_order, _cx, said| async move {
    ///                 Ok(Order::update().approved_by(said.by.filter(|_| said.answer)))
    ///             })
    ///             .end(),
    ///     })
    ///     .build()?;
    /// # Ok::<(), harness::BuildError>(())
    /// ```
    #[track_caller]
    pub fn ask<Q, F, Fut>(self, question: F) -> NeedsAnswer<C, S, St, Q, F>
    where
        Q: Question,
        F: Fn(View<S>, Cx<C>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Q, StepError>> + Send + 'static,
    {
        NeedsAnswer::new(question, Location::caller())
    }
}

impl<C: Context, S: State, St> Define<C, S, St> {
    /// A step that runs its body for each of several items, a few at a time.
    ///
    /// `items` computes them once per entry into the step; they are recorded, so a resumed run works
    /// on the same ones. Each item has one durable result. After a crash or a question only items
    /// that are not done run again. The results are folded in the order of the items.
    ///
    /// The policies of the step are those of each item: `.retry(..)`, `.timeout(..)`. A session that
    /// failed here and is resumed runs the failed items again; their effects and answers are kept.
    ///
    /// The items share one task: an item that computes for long without a pause delays the others.
    /// In the steps of `.finally(..)` an item that asks fails.
    ///
    /// ```
    /// use harness::prelude::*;
    ///
    /// #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    /// struct Report {
    ///     pages: Vec<String>,
    ///     #[state(reduce = append)]
    ///     sizes: Vec<usize>,
    /// }
    ///
    /// #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    /// enum Step { Fetch }
    ///
    /// async fn fetch(page: String, _: View<Report>, cx: Cx<()>) -> Result<usize, StepError> {
    ///     cx.once("fetch", async move || Ok(page.len())).await
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// let report = Harness::<(), Report>::builder("report")
    ///     .start(Step::Fetch)
    ///     .steps(|define, step| match step {
    ///         Step::Fetch => define
    ///             .each(|report, _cx| async move { Ok(report.pages.clone()) })
    ///             .concurrency(4)
    ///             .run(fetch)
    ///             .fold(|_report, sizes| Ok(Report::update().sizes(sizes)))
    ///             .end(),
    ///     })
    ///     .build()?;
    /// let input = Report::update().pages(vec!["a".to_owned(), "bcd".to_owned()]);
    /// let ended = report.agent("r", ()).run(input, ()).await?.ended()?;
    /// assert_eq!(ended.state.sizes, [1, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[track_caller]
    pub fn each<I, F, Fut>(self, items: F) -> NeedsItemBody<C, S, St, I>
    where
        I: Stored + Send + 'static,
        F: Fn(View<S>, Cx<C>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<I>, StepError>> + Send + 'static,
    {
        NeedsItemBody::new(items, Location::caller())
    }
}

impl<C: Context, S: State, St> Define<C, S, St> {
    /// A step that is switched off. An edge to it, or a turn that starts with it, is a violation
    /// that reports `why`.
    ///
    /// ```
    /// use harness::prelude::*;
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Draft { text: String }
    /// # async fn work(_: View<Draft>, _: Cx<()>) -> StepResult<Draft> { Ok(Draft::update()) }
    ///
    /// #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    /// enum Step { Write, Translate }
    ///
    /// let translate = false; // for example from a settings file
    /// let drafts = Harness::<(), Draft>::builder("drafts")
    ///     .start(Step::Write)
    ///     .steps(|define, step| match step {
    ///         Step::Write if translate => define.run(work).then(Step::Translate),
    ///         Step::Write => define.run(work).end(),
    ///         Step::Translate if translate => define.run(work).end(),
    ///         Step::Translate => define.off("the settings set no language"),
    ///     })
    ///     .build()?;
    /// # Ok::<(), harness::BuildError>(())
    /// ```
    #[track_caller]
    pub fn off(self, why: impl Into<String>) -> StepDef<C, S, St> {
        let why: String = why.into();
        NeedsThenEndOrRoute::new(Kind::Off(why.into()), Action::Decide, Location::caller()).end()
    }
}

impl<C: Context, S: State, St: StepId> Define<C, S, St> {
    /// A decision: `route` reads the state and returns a signal, and `targets` maps each signal to
    /// the next step.
    #[track_caller]
    pub fn decide<Sig: Signal>(
        self,
        route: impl Fn(&S) -> Sig + Send + Sync + 'static,
        targets: impl FnMut(Sig) -> Target<St>,
    ) -> StepDef<C, S, St> {
        NeedsThenEndOrRoute::<C, S, St, _>::new(Kind::Decide, Action::Decide, Location::caller())
            .route(route, targets)
    }
}

impl<C: Context, S: State, St: StepId> Define<C, S, St> {
    /// Nests the steps of another loop. `wrap` is the variant that holds them. `after` is the
    /// target when the nested loop ends. `body` declares the nested `step`.
    ///
    /// Targets in `body` are steps of the nested loop. Its step names are prefixed by the variant:
    /// `Check/Read`. A loop can be nested any number of times and at any depth.
    ///
    /// ```
    /// use harness::prelude::*;
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Draft { text: String }
    /// # async fn work(_: View<Draft>, _: Cx<()>) -> StepResult<Draft> { Ok(Draft::update()) }
    ///
    /// mod check {
    ///     # use super::{Draft, work};
    ///     use harness::prelude::*;
    ///     use harness::{Define, declare::StepDef};
    ///
    ///     #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    ///     pub enum Step { Read, Mark }
    ///
    ///     pub fn check(define: Define<(), Draft, Step>, step: Step) -> StepDef<(), Draft, Step> {
    ///         match step {
    ///             Step::Read => define.run(work).then(Step::Mark),
    ///             Step::Mark => define.run(work).end(),
    ///         }
    ///     }
    /// }
    ///
    /// #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    /// enum Step {
    ///     Write,
    ///     #[step(nest)]
    ///     Check(check::Step),
    ///     Publish,
    /// }
    ///
    /// # fn main() -> Result<(), harness::BuildError> {
    /// let drafts = Harness::<(), Draft>::builder("drafts")
    ///     .start(Step::Write)
    ///     .steps(|define, step| match step {
    ///         Step::Write => define.run(work).then(Step::Check(check::Step::Read)),
    ///         Step::Check(step) => {
    ///             define.nest(Step::Check, to(Step::Publish), check::check, step)
    ///         }
    ///         Step::Publish => define.run(work).end(),
    ///     })
    ///     .build()?;
    /// let names: Vec<&str> = drafts.graph().steps().collect();
    /// assert_eq!(names, ["Write", "Check/Read", "Check/Mark", "Publish"]);
    /// # Ok(()) }
    /// ```
    pub fn nest<Sub: StepId>(
        self,
        wrap: impl Fn(Sub) -> St,
        after: Target<St>,
        body: impl FnOnce(Define<C, S, Sub>, Sub) -> StepDef<C, S, Sub>,
        step: Sub,
    ) -> StepDef<C, S, St> {
        StepDef { draft: body(Define::new(), step).draft.nested(&wrap, &after) }
    }
}

impl<C, S, St> fmt::Debug for Define<C, S, St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Define")
    }
}
