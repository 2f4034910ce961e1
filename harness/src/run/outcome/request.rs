use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;

use serde_json::{Map, Value};
use tracing::Span;

use crate::graph::{Budget, Graph};
use crate::id::{InvalidSessionId, RunId, SessionId};
use crate::observe::{Fanout, Observer, Observers, Outlet};
use crate::question::BreakpointAt;
use crate::state::State;
use crate::step::{BoxFuture, StepName};

use super::Outcome;
use crate::observe::trace::MAX_TRACE;
use crate::run::breakpoints::Breakpoints;
use crate::run::effects::current_parent;
use crate::run::elsewhere::Elsewhere;
use crate::run::error::{Kind, RunError};
use crate::run::parent::Parent;
use crate::run::stop::StopSignal;

/// What to do if another run holds the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnBusy {
    /// Fail with an error that [is busy](RunError::is_busy). Answers are still recorded, and the
    /// other run applies them.
    #[default]
    Reject,
    /// Wait until the other run has settled.
    Wait,
    /// Ask the other run to stop at its next boundary, and wait until it has settled.
    ///
    /// A [resume](crate::Agent::resume) then continues the turn. The input of a
    /// [run](crate::Agent::run) takes the turn's place: what the steps of the stopped turn have
    /// committed stays, the rest of the turn is given up, and the input starts the next turn. It does
    /// not matter which request stopped the turn, or when: a session that
    /// [was stopped](crate::Outcome::Stopped) takes the input as well. A turn that has asked a
    /// question, failed or reached its budget instead, or has an effect in doubt, is not given up:
    /// the error says what the session needs.
    Stop,
    /// Send the input to the other run, which starts the next turn with it when the current one has
    /// ended: [`Outcome::Queued`](crate::Outcome::Queued). A request that resumes is refused as by
    /// `Reject`.
    Queue,
}

/// A run that is requested and has not begun. Await it to run it in this task, or
/// [`start`](RunRequest::start) it as a task of its own, with a handle.
///
/// Dropping the future of a run drops the running step. Effects in flight are finished and recorded
/// in the background. A resumed session returns to the outcome it came from.
#[must_use = "a run does nothing until it is awaited or started"]
pub struct RunRequest<S: State> {
    pub(in crate::run) options: Box<Options>,
    pub(in crate::run) launch: Launch<S>,
}

/// Begins the run.
type Launch<S> = Box<dyn FnOnce(Launched) -> BoxFuture<Result<Outcome<S>, RunError>> + Send>;

/// The options of a request.
pub(crate) struct Options {
    /// The loop.
    pub(crate) graph: Graph,
    pub(crate) session: Result<SessionId, InvalidSessionId>,
    /// Whether the session already has its id.
    pub(crate) resumed: bool,
    pub(crate) observers: Observers,
    pub(crate) budget: Option<Budget>,
    pub(crate) on_busy: OnBusy,
    pub(crate) input_id: Option<String>,
    pub(crate) withdraw: bool,
    pub(crate) trace: Option<Map<String, Value>>,
    /// Whether the run has no parent, also in a step.
    pub(crate) detached: bool,
    /// Whether the stream of events has tokens.
    pub(crate) tokens: bool,
    pub(crate) breakpoints: Vec<(StepName, BreakpointAt)>,
    /// None if its children run where it runs.
    pub(crate) elsewhere: Option<Arc<dyn Elsewhere>>,
}

/// A request on its way to the driver.
pub(crate) struct Launched {
    pub(crate) session: SessionId,
    pub(crate) run: RunId,
    pub(crate) parent: Option<Parent>,
    pub(crate) fanout: Fanout,
    pub(crate) budget: Option<Budget>,
    pub(crate) on_busy: OnBusy,
    pub(crate) input_id: Option<String>,
    /// Whether open interrupts are withdrawn.
    pub(crate) withdraw: bool,
    pub(crate) trace: Option<Map<String, Value>>,
    /// The span in which it was requested.
    pub(crate) within: Span,
    /// None if the run has no breakpoints.
    pub(crate) breakpoints: Option<Box<Breakpoints>>,
    pub(crate) elsewhere: Option<Arc<dyn Elsewhere>>,
    /// Whether a worker runs it.
    pub(crate) worker: bool,
    pub(crate) stop: StopSignal,
}

impl<S: State> RunRequest<S> {
    pub(crate) fn new<F>(options: Options, launch: F) -> Self
    where
        F: FnOnce(Launched) -> BoxFuture<Result<Outcome<S>, RunError>> + Send + 'static,
    {
        Self { options: Box::new(options), launch: Box::new(launch) }
    }

    /// Starts the children of the run elsewhere.
    pub(crate) fn elsewhere(mut self, elsewhere: Option<Arc<dyn Elsewhere>>) -> Self {
        self.options.elsewhere = elsewhere;
        self
    }

    /// Sets the session of a new run. The default is a fresh id. A resumed session keeps its id, and
    /// this has no effect.
    pub fn session(mut self, id: impl Into<String>) -> Self {
        if !self.options.resumed {
            self.options.session = SessionId::new(id.into());
        }
        self
    }

    /// Adds an observer for this run. Can be called more than once; each observer receives every
    /// event.
    pub fn observe(mut self, observer: impl Observer) -> Self {
        self.options.observers.add(observer);
        self
    }

    /// Replaces the loop's budget for this run. The earlier spend of the turn still counts.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.options.budget = Some(budget);
        self
    }

    /// Sets what to do if another run holds the session. The default is [`OnBusy::Reject`].
    pub fn on_busy(mut self, what: OnBusy) -> Self {
        self.options.on_busy = what;
        self
    }

    /// Sets an id for the input, so that it is applied once. Another run of the session with the
    /// same id and the same input returns the session's current outcome, or recovers the session
    /// after a crash. Another input with the same id is an
    /// [error](RunError::is_input_conflict), whether the first one was applied, is being applied or
    /// is queued. Needs a store and a [`session`](Self::session).
    pub fn input_id(mut self, id: impl Into<String>) -> Self {
        self.options.input_id = Some(id.into());
        self
    }

    /// Starts the next turn even if the session has open interrupts: they are withdrawn and can no
    /// longer be answered.
    pub fn withdraw_questions(mut self) -> Self {
        self.options.withdraw = true;
        self
    }

    /// Records the origin of the run, such as the `traceparent` of an HTTP request, so that later
    /// runs of the session can link to it. It is stored with the session, up to 1 KiB of JSON; a
    /// longer trace is omitted with a warning. Where traces are [propagated](crate::observe::trace), the
    /// run's span is a part of the origin's, unless it is requested in another span, and the session
    /// keeps the context of the run's own.
    pub fn trace<K: Into<String>, V: Into<String>>(
        mut self,
        parts: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let parts = parts.into_iter().map(|(name, value)| (name.into(), Value::from(value.into())));
        let trace: Map<String, Value> = parts.collect();
        let bytes = serde_json::to_string(&trace).map_or(usize::MAX, |text| text.len());
        self.options.trace = (bytes <= MAX_TRACE).then_some(trace);
        if bytes > MAX_TRACE {
            tracing::warn!(
                bytes,
                most = MAX_TRACE,
                "the trace is too long to store and is omitted"
            );
        }
        self
    }

    /// Makes the run independent of the step that requests it. By default a run that is requested in
    /// a step is a *child* of that step's run: its events name its [parent](crate::observe::Event),
    /// observers of the parent receive
    /// [`ChildStarted`](crate::observe::EventKind::ChildStarted) and
    /// [`ChildSettled`](crate::observe::EventKind::ChildSettled), and what it spends counts against
    /// the parent's budget, too. Has no effect outside of a step.
    ///
    /// A child is not durable as such: if the parent's process dies, the step runs again and requests
    /// it again. Give it a [`session`](Self::session) and an [`input_id`](Self::input_id) that follow
    /// from [`cx.op_id()`](crate::Cx::op_id), so that it resumes then.
    ///
    /// ```
    /// # use harness::prelude::*;
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Notice { text: String }
    /// async fn write(_: View<Notice>, audit: Agent<(), Notice>) -> StepResult<Notice> {
    ///     // Not part of what this run may spend.
    ///     let audited = audit.run(Notice::update(), ()).detached().await.fatal()?;
    ///     Ok(Notice::update().text(audited.ended().fatal()?.state.text))
    /// }
    /// ```
    pub fn detached(mut self) -> Self {
        self.options.detached = true;
        self
    }

    /// Makes [`Token`](crate::observe::EventKind::Token) events, the parts of the replies of models, a
    /// part of [`Run::events`](crate::Run::events). Model calls then stream.
    pub fn with_tokens(mut self) -> Self {
        self.options.tokens = true;
        self
    }

    /// Interrupts the run whenever it is about to begin `step`: it asks a
    /// [`Breakpoint`](crate::question::Breakpoint), which waits, is listed and is answered as the
    /// questions of steps are, and the run settles as [`Outcome::Interrupted`]. Nothing of the step
    /// has happened then, not even its `.after(..)`; while the question stands,
    /// [`Agent::edit`](crate::Agent::edit) can correct the state.
    ///
    /// A breakpoint belongs to this run. A run that resumes the session has the ones of its own
    /// request, and none if that sets none, also in another process; a question that was asked still
    /// needs its answer. An answered breakpoint does not fire again before the step has been entered
    /// again. In the steps of `.finally(..)`, which may not ask, it does not fire.
    ///
    /// A step of a loop that was [built at run time](crate::Harness::dynamic) is given by its name.
    ///
    /// ```
    /// # use harness::prelude::*;
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Doc { text: String, sent: bool }
    /// # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Write, Send }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let harness = Harness::<(), Doc>::builder("d").start(Step::Write).steps(|define, step| match step {
    /// #     Step::Write => define.run(|_, _| async move { Ok(Doc::update().text("hi")) }).then(Step::Send),
    /// #     Step::Send => define.run(|_, _| async move { Ok(Doc::update().sent(true)) }).end(),
    /// # }).build()?;
    /// # let agent = harness.agent("a", ());
    /// use harness::question::{Breakpoint, BreakpointAnswer};
    ///
    /// let outcome = agent.run(Doc::update(), ()).break_before(Step::Send).await?;
    /// let Outcome::Interrupted(waiting) = outcome else { panic!() };
    /// assert!(waiting.state.text == "hi" && !waiting.state.sent);
    ///
    /// let asked = waiting.pending::<Breakpoint>()?;
    /// assert_eq!(asked.question.step, "Send");
    /// let answer = asked.answer(BreakpointAnswer::Continue);
    /// assert!(agent.resume(&waiting, answer, ()).await?.ended()?.state.sent);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// Awaiting the run returns an error that [is an unknown step](RunError::is_unknown_step) if the
    /// loop does not have the step. Nothing has run then.
    pub fn break_before(mut self, step: impl Into<StepName>) -> Self {
        self.options.breakpoints.push((step.into(), BreakpointAt::Before));
        self
    }

    /// The same once `step` has committed: its update is in the state, and the next step has not
    /// begun. It does not fire after a step that fails, or that ends the turn.
    ///
    /// # Errors
    /// As [`break_before`](Self::break_before).
    pub fn break_after(mut self, step: impl Into<StepName>) -> Self {
        self.options.breakpoints.push((step.into(), BreakpointAt::After));
        self
    }
}

impl Options {
    /// The request as the driver takes it, and why it is refused, if it is.
    pub(crate) fn launch(self, stream: Option<Outlet>) -> (Launched, Option<RunError>) {
        let (session, mut refused) = match self.session {
            Ok(id) => (id, None),
            Err(error) => (SessionId::fresh(), Some(Kind::from(error).into())),
        };
        let breakpoints = match Breakpoints::new(&self.graph, &self.breakpoints) {
            Ok(breakpoints) => (!self.breakpoints.is_empty()).then(|| Box::new(breakpoints)),
            Err(unknown) => {
                refused.get_or_insert_with(|| unknown.into());
                None
            }
        };
        let launched = Launched {
            session,
            run: RunId::fresh(),
            parent: if self.detached { None } else { current_parent() },
            fanout: Fanout::new(self.observers, stream),
            budget: self.budget,
            on_busy: self.on_busy,
            input_id: self.input_id,
            withdraw: self.withdraw,
            trace: self.trace,
            within: Span::current(),
            breakpoints,
            elsewhere: self.elsewhere,
            worker: false,
            stop: StopSignal::default(),
        };
        (launched, refused)
    }
}

impl<S: State> IntoFuture for RunRequest<S> {
    type Output = Result<Outcome<S>, RunError>;
    type IntoFuture = BoxFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.controlled(None).1
    }
}

impl<S: State> fmt::Debug for RunRequest<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunRequest").field("session", &self.options.session).finish_non_exhaustive()
    }
}
