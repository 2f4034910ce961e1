use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use crate::context::Context;
use crate::graph::{Kind, Target};
use crate::question::Question;
use crate::signal::Signal;
use crate::state::{State, Stored};
use crate::step::{Action, Cx, Handler, Lens, StepError, StepId, StepResult, View};

use super::About;
use super::draft::Way;
use super::each::NeedsItemBody;
use super::nest::NeedsEnds;
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
        NeedsThenEndOrRoute::new(Kind::Off(why.into()), Action::Decide, Location::caller())
            .exit(Way::End(0), None)
    }
}

impl<C: Context, S: State, St: StepId> Define<C, S, St> {
    /// A decision: `route` reads the state and returns a signal, and `targets` maps each signal to
    /// the next step.
    #[track_caller]
    pub fn decide<Sig: Signal>(
        self,
        route: impl Fn(&S) -> Sig + Send + Sync + 'static,
        targets: impl FnMut(Sig) -> Target<St, St::End>,
    ) -> StepDef<C, S, St> {
        NeedsThenEndOrRoute::<C, S, St, _>::new(Kind::Decide, Action::Decide, Location::caller())
            .route(route, targets)
    }
}

impl<C: Context, S: State, St: StepId> Define<C, S, St> {
    /// Nests the steps of another loop. `wrap` is the variant that holds them, and `body` declares the
    /// nested `step`. Last comes the target when the nested loop ends: `.then(..)`, `.end()`, or
    /// `.route(..)` by the signal that it ends with.
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
    ///     #[derive(Signal, Clone, Copy, Debug)]
    ///     pub enum Verdict { Good, Bad }
    ///
    ///     #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    ///     #[step(ends = Verdict)]
    ///     pub enum Step { Read, Mark }
    ///
    ///     fn judge(draft: &Draft) -> Verdict {
    ///         if draft.text.is_empty() { Verdict::Bad } else { Verdict::Good }
    ///     }
    ///
    ///     pub fn check(define: Define<(), Draft, Step>, step: Step) -> StepDef<(), Draft, Step> {
    ///         match step {
    ///             Step::Read => define.run(work).route(judge, |verdict| match verdict {
    ///                 Verdict::Good => to(Step::Mark),
    ///                 Verdict::Bad => end_with(verdict),
    ///             }),
    ///             Step::Mark => define.run(work).end_with(Verdict::Good),
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
    ///             define.nest(Step::Check, check::check, step).route(|verdict| match verdict {
    ///                 check::Verdict::Good => to(Step::Publish),
    ///                 check::Verdict::Bad => to(Step::Write),
    ///             })
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
        wrap: impl Fn(Sub) -> St + 'static,
        body: impl FnOnce(Define<C, S, Sub>, Sub) -> StepDef<C, S, Sub>,
        step: Sub,
    ) -> NeedsEnds<C, S, St, Sub> {
        let draft = body(Define::new(), step).draft;
        NeedsEnds { draft, wrap: Box::new(wrap) }
    }

    /// A part of the state, for a nested loop with a state of its own. `read` finds the part in the
    /// state of this loop, and `change` makes an update of the part an update of this state. The
    /// field of the part is `#[state(nest)]`: it folds by the reducers of its own type.
    ///
    /// ```
    /// use harness::prelude::*;
    ///
    /// mod essay {
    ///     use harness::prelude::*;
    ///     use harness::{Define, declare::StepDef};
    ///
    ///     #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    ///     pub struct Essay {
    ///         #[state(reduce = append)]
    ///         pub paragraphs: Vec<String>,
    ///     }
    ///
    ///     #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    ///     pub enum Step { Write }
    ///
    ///     async fn write(essay: View<Essay>, _: Cx<()>) -> StepResult<Essay> {
    ///         Ok(Essay::update().paragraphs([format!("Paragraph {}.", essay.paragraphs.len() + 1)]))
    ///     }
    ///
    ///     pub fn essay(define: Define<(), Essay, Step>, step: Step) -> StepDef<(), Essay, Step> {
    ///         match step {
    ///             Step::Write => define.run(write).end(),
    ///         }
    ///     }
    /// }
    /// use essay::Essay;
    ///
    /// #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    /// struct Paper {
    ///     #[state(nest)]
    ///     body: Essay,
    ///     #[state(nest)]
    ///     appendix: Essay,
    /// }
    ///
    /// #[derive(StepId, Clone, Debug, PartialEq, Eq)]
    /// enum Step {
    ///     #[step(nest)]
    ///     Body(essay::Step),
    ///     #[step(nest)]
    ///     Appendix(essay::Step),
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let papers = Harness::<(), Paper>::builder("papers")
    ///     .start(Step::Body(essay::Step::Write))
    ///     .steps(|define, step| match step {
    ///         Step::Body(step) => define
    ///             .part(|paper| &paper.body, |essay| Paper::update().body(essay))
    ///             .nest(Step::Body, essay::essay, step)
    ///             .then(Step::Appendix(essay::Step::Write)),
    ///         Step::Appendix(step) => define
    ///             .part(|paper| &paper.appendix, |essay| Paper::update().appendix(essay))
    ///             .nest(Step::Appendix, essay::essay, step)
    ///             .end(),
    ///     })
    ///     .build()?;
    /// let input = Paper::update().body(Essay::update().paragraphs(["Title.".to_owned()]));
    /// let ended = papers.agent("author", ()).run(input, ()).await?.ended()?;
    /// assert_eq!(ended.state.body.paragraphs, ["Title.", "Paragraph 2."]);
    /// assert_eq!(ended.state.appendix.paragraphs, ["Paragraph 1."]);
    /// # Ok(()) }) }
    /// ```
    ///
    /// A nested loop that is entered again continues with its part as it was left.
    pub fn part<T, R, F>(self, read: R, change: F) -> DefinePart<C, S, T, St>
    where
        T: State,
        R: Fn(&S) -> &T + Send + Sync + 'static,
        F: Fn(T::Update) -> S::Update + Send + Sync + 'static,
    {
        let lens = Lens { read: Arc::new(read), change: Arc::new(change) };
        DefinePart { lens, types: PhantomData }
    }
}

impl<C, S, St> fmt::Debug for Define<C, S, St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Define")
    }
}

/// Nests a loop that works on the part `T` of the state. [`Define::part`] makes it.
#[must_use = "nest a loop: `.nest(..)`"]
pub struct DefinePart<C, S: State, T: State, St> {
    lens: Lens<S, T>,
    types: About<(C, St)>,
}

impl<C: Context, S: State, T: State, St: StepId> DefinePart<C, S, T, St> {
    /// Nests the steps of a loop on the part, as [`Define::nest`] does of a loop on the whole state.
    pub fn nest<Sub: StepId>(
        self,
        wrap: impl Fn(Sub) -> St + 'static,
        body: impl FnOnce(Define<C, T, Sub>, Sub) -> StepDef<C, T, Sub>,
        step: Sub,
    ) -> NeedsEnds<C, S, St, Sub> {
        let draft = body(Define::new(), step).draft.on_whole(&self.lens);
        NeedsEnds { draft, wrap: Box::new(wrap) }
    }
}

impl<C, S: State, T: State, St> fmt::Debug for DefinePart<C, S, T, St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DefinePart")
    }
}
