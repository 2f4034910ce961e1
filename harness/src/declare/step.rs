use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::Location;
use std::time::Duration;

use crate::context::Context;
use crate::graph::{Kind, Target};
use crate::question::Question;
use crate::signal::Signal;
use crate::state::State;
use crate::step::{
    Action, Answered, Cx, LoopEnd, Policy, QuestionType, Retry, Route, StepError, StepId,
    StepResult, View,
};

use super::draft::{At, Draft, Link, Way, Work};
use super::{About, StepName};

/// A [`NeedsThenEndOrRoute`] of a step with a body.
#[derive(Debug)]
pub enum OfStep {}

/// A [`NeedsThenEndOrRoute`] of a gate, which may also call `.expires(..)`.
#[derive(Debug)]
pub enum OfGate {}

/// The steps of a loop that ends without a signal, as every loop does that a harness runs.
#[diagnostic::on_unimplemented(
    message = "the loop of `{Self}` ends with a signal",
    label = "the signal is missing here",
    note = "inside that loop write `.end_with(..)`; where it is nested, `.route(|signal| match signal {{ .. }})`",
    note = "a harness runs only loops that end without a signal: nest this one in another, or remove `#[step(ends = ..)]`"
)]
pub trait EndsPlainly {}

#[diagnostic::do_not_recommend]
impl<St: StepId<End = ()>> EndsPlainly for St {}

impl EndsPlainly for StepName {}

/// A step without an exit yet. It needs `.then(..)`, `.end()` or `.route(..)`. Policies come before
/// the exit. The compiler prints its name, which is the remedy, where one is returned as a
/// [`StepDef`].
///
/// `By` is [`OfStep`], or [`OfGate`] for a gate.
#[must_use = "a step needs an exit: `.then(step)`, `.end()` or `.route(..)`"]
pub struct NeedsThenEndOrRoute<C: Context, S: State, St, By> {
    pub(super) work: Work<C, S, St>,
    by: About<By>,
}

impl<C: Context, S: State, St> NeedsThenEndOrRoute<C, S, St, OfStep> {
    pub(super) fn new(kind: Kind, action: Action<C, S>, at: At) -> Self {
        let policy = Policy::default();
        let work = Work {
            kind,
            action,
            policy,
            on_error: None,
            at_most: None,
            question: None,
            expires: None,
            aliases: Vec::new(),
            at,
            faults: Vec::new(),
        };
        Self { work, by: PhantomData }
    }
}

impl<C: Context, S: State, St> NeedsThenEndOrRoute<C, S, St, OfGate> {
    /// How long the question waits. If it expires without an answer, the gate fails with
    /// [`FailureKind::Expired`](crate::FailureKind::Expired), which is not retried. The time starts
    /// when the question is logged, and passes while no process runs the session.
    pub fn expires_or_fails(self, after: Duration) -> NeedsThenEndOrRoute<C, S, St, OfStep> {
        self.expiring(after, None)
    }

    pub(super) fn expiring(
        mut self,
        after: Duration,
        to: Option<Link<St>>,
    ) -> NeedsThenEndOrRoute<C, S, St, OfStep> {
        self.work.expires = Some((after, to));
        NeedsThenEndOrRoute { work: self.work, by: PhantomData }
    }
}

impl<C: Context, S: State, St, By> NeedsThenEndOrRoute<C, S, St, By> {
    /// Retries the step when it fails with a retryable error. Without it a step has one attempt.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.work.policy.retry = Some(retry);
        self
    }

    /// Runs the step this long after it was entered: a durable timer, like
    /// [`cx.sleep(..)`](crate::Cx::sleep). A retry and an answer do not wait again; the next entry
    /// does.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use harness::prelude::*;
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Trial { ended: bool }
    /// # async fn end_trial(_: View<Trial>, _: Cx<()>) -> StepResult<Trial> { Ok(Trial::update().ended(true)) }
    /// # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { End }
    /// let trials = Harness::<(), Trial>::builder("trials")
    ///     .start(Step::End)
    ///     .steps(|define, step| match step {
    ///         Step::End => define.run(end_trial).after(Duration::from_secs(14 * 24 * 3600)).end(),
    ///     })
    ///     .build()?;
    /// # Ok::<(), harness::BuildError>(())
    /// ```
    pub fn after(mut self, time: Duration) -> Self {
        self.work.policy.after = Some(time);
        self
    }

    /// The time limit of one attempt. An attempt that exceeds it is dropped and counts as a
    /// retryable failure.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.work.policy.timeout = Some(limit);
        self
    }

    /// Ends the turn, or the loop if that is nested.
    pub fn end(self) -> StepDef<C, S, St>
    where
        St: EndsPlainly,
    {
        self.exit(Way::End(0), None)
    }

    pub(super) fn exit(self, way: Way<St>, route: Option<Route<S>>) -> StepDef<C, S, St> {
        StepDef { draft: Draft { work: self.work, way, route } }
    }
}

impl<C: Context, S: State, St: StepId> NeedsThenEndOrRoute<C, S, St, OfGate> {
    /// How long the question waits. If it expires without an answer, the loop continues at `step`,
    /// and the gate does not change the state. The time starts when the question is logged, and
    /// passes while no process runs the session.
    #[track_caller]
    pub fn expires(self, after: Duration, step: St) -> NeedsThenEndOrRoute<C, S, St, OfStep> {
        self.expiring(after, Some(Link { to: step, at: Location::caller() }))
    }
}

impl<C: Context, S: State, St: StepId, By> NeedsThenEndOrRoute<C, S, St, By> {
    /// The step to run when this step fails and its retries are used up. It takes precedence over
    /// the `.on_error(..)` of the loop. The failed attempt does not change the state. The error
    /// step reads [`cx.failure()`](crate::Cx::failure).
    #[track_caller]
    pub fn on_error(mut self, step: St) -> Self {
        self.work.on_error = Some(Link { to: step, at: Location::caller() });
        self
    }

    /// Allows at most `times` entries into this step in one turn. Further entries go to `instead`.
    #[track_caller]
    pub fn at_most(mut self, times: u32, instead: St) -> Self {
        self.work.at_most = Some((times, Link { to: instead, at: Location::caller() }));
        self
    }

    /// Continues at `step`.
    #[track_caller]
    pub fn then(self, step: St) -> StepDef<C, S, St> {
        self.exit(Way::Then(Link { to: step, at: Location::caller() }), None)
    }

    /// Ends a nested loop with a signal, by which the loop around it continues: see
    /// [`Define::nest`](crate::Define::nest).
    pub fn end_with(self, signal: St::End) -> StepDef<C, S, St> {
        self.exit(Way::End(signal.number()), None)
    }

    /// `route` reads the updated state and returns a signal. `targets` maps each signal to a
    /// target; it is called once for each signal, when the loop is built.
    pub fn route<Sig: Signal>(
        self,
        route: impl Fn(&S) -> Sig + Send + Sync + 'static,
        mut targets: impl FnMut(Sig) -> Target<St, St::End>,
    ) -> StepDef<C, S, St> {
        let numbered = |target: Target<St, St::End>| target.map(|step| step, LoopEnd::number);
        let branches =
            Sig::ALL.iter().map(|signal| (signal.name(), numbered(targets(*signal)))).collect();
        self.exit(Way::Route { signals: Sig::NAME, branches }, Some(indexed(route)))
    }
}

/// A route as the driver calls it.
pub(super) fn indexed<S: State, Sig: Signal>(
    route: impl Fn(&S) -> Sig + Send + Sync + 'static,
) -> Route<S> {
    let count = Sig::ALL.len();
    Box::new(move |state| {
        let index = route(state).index();
        // Derived signals always satisfy this. The driver catches the panic of a wrong manual impl.
        assert!(
            index < count,
            "signal index {index} is out of range for `{}` (it has {count})",
            Sig::NAME
        );
        index
    })
}

impl<C: Context, S: State, St, By> fmt::Debug for NeedsThenEndOrRoute<C, S, St, By> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NeedsThenEndOrRoute(declared at {})", self.work.at)
    }
}

/// A gate without its second half yet. It needs `.answer(..)`.
#[must_use = "a gate needs its second half: `.answer(..)`"]
pub struct NeedsAnswer<C, S, St, Q, F> {
    question: F,
    at: &'static Location<'static>,
    types: About<(C, S, St, Q)>,
}

impl<C: Context, S: State, St, Q: Question, F> NeedsAnswer<C, S, St, Q, F> {
    pub(super) fn new(question: F, at: &'static Location<'static>) -> Self {
        Self { question, at, types: PhantomData }
    }

    /// The second half of a gate: receives the answer and returns an update.
    pub fn answer<AskFut, B, Fut>(self, body: B) -> NeedsThenEndOrRoute<C, S, St, OfGate>
    where
        F: Fn(View<S>, Cx<C>) -> AskFut + Send + Sync + 'static,
        AskFut: Future<Output = Result<Q, StepError>> + Send + 'static,
        B: Fn(View<S>, Cx<C>, Answered<Q>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = StepResult<S>> + Send + 'static,
    {
        let step = NeedsThenEndOrRoute::new(Kind::Gate, Action::ask(self.question, body), self.at);
        let work = Work { question: Some(QuestionType::of::<Q>()), ..step.work };
        NeedsThenEndOrRoute { work, by: PhantomData }
    }
}

impl<C, S, St, Q, F> fmt::Debug for NeedsAnswer<C, S, St, Q, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NeedsAnswer(declared at {})", self.at)
    }
}

/// A completely declared step.
#[must_use = "return it from the closure of `.steps(..)`"]
pub struct StepDef<C: Context, S: State, St> {
    pub(super) draft: Draft<C, S, St>,
}

impl<C: Context, S: State, St> fmt::Debug for StepDef<C, S, St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StepDef(declared at {})", self.draft.work.at)
    }
}
