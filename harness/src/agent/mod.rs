//! An agent: a harness with a name and its required slots, ready to run sessions.

mod call;
mod check;
mod edit;
mod history;
mod stored;
mod work;

use std::collections::HashMap;
use std::fmt;
use std::future::ready;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use crate::clock::UtcMillis;
use crate::compat::LoopIdentity;
use crate::context::{Context, RequiredSlots, RuntimeSlots};
use crate::declare::Harness;
use crate::id::{AgentId, RunId, SessionId};
use crate::inbox::{Verdict, judge, unfit};
use crate::observe::{Observer, Observers};
use crate::recovery::{self, Launch, Storage, Taker, launch};
use crate::run::{
    Answered, Begin, Kind, Launched, OnBusy, Options, Outcome, Rest, Resting, Resumable, Resume,
    RunError, RunRequest, Source,
};
use crate::session::{Change, Entry, Resolution, Resolved, RunStarted, Salt, Session};
use crate::state::{Ops, State};
use crate::step::{Answer, Answers, BoxFuture};
use crate::store::InboxSeq;
use crate::text::words;

use stored::Stored;
pub use work::Enqueue;

/// A harness with an id and its required slots: it runs sessions. Cheap to clone.
///
/// ```
/// # use harness::prelude::*;
/// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Doc { text: String }
/// # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Write }
/// #[derive(Context)]
/// struct Ctx {
///     #[slot(required)]
///     greeting: String,
///     #[slot(runtime)]
///     name: String,
/// }
///
/// async fn write(_: View<Doc>, cx: Cx<Ctx>) -> StepResult<Doc> {
///     Ok(Doc::update().text(format!("{}, {}", cx.greeting, cx.name)))
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let harness = Harness::<Ctx, Doc>::builder("writer")
///     .start(Step::Write)
///     .steps(|define, step| match step {
///         Step::Write => define.run(write).end(),
///     })
///     .build()?;
/// let agent = harness.agent("polite", Ctx::required().greeting("Good evening".into()).build());
/// let ended = agent
///     .run(Doc::update(), Ctx::runtime().name("Ada".into()).build())
///     .await?
///     .ended()?;
/// assert_eq!(ended.state.text, "Good evening, Ada");
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub struct Agent<C: Context, S: State> {
    inner: Arc<Inner<C, S>>,
}

struct Inner<C: Context, S: State> {
    id: AgentId,
    harness: Harness<C, S>,
    required: C::Required,
    observers: Observers,
    stored: Stored,
    identity: Arc<OnceLock<Arc<LoopIdentity>>>,
}

impl<C: Context, S: State> Harness<C, S> {
    /// Creates an agent of this harness, with an id and its required slots (`()` if the context has
    /// none).
    pub fn agent(&self, id: impl Into<String>, required: impl RequiredSlots<C>) -> Agent<C, S> {
        Agent {
            inner: Arc::new(Inner {
                id: AgentId::new(id),
                harness: self.clone(),
                required: required.filled(),
                observers: self.observers.clone(),
                stored: Stored::default(),
                identity: Arc::default(),
            }),
        }
    }
}

impl<C: Context, S: State> Agent<C, S> {
    /// The agent's id.
    pub fn id(&self) -> &AgentId {
        &self.inner.id
    }

    /// Adds an observer for every run of this agent. Can be called more than once; each observer
    /// receives every event.
    #[must_use = "it returns the agent with the observer"]
    pub fn observe(self, observer: impl Observer) -> Self {
        self.change(|inner| inner.observers.add(observer))
    }

    /// What sessions are compared with, computed on first use.
    fn identity(&self) -> &Arc<LoopIdentity> {
        let wiring = &self.inner.harness.graph().wiring;
        self.inner.identity.get_or_init(|| Arc::new(LoopIdentity::of::<S>(wiring)))
    }

    fn change(self, change: impl FnOnce(&mut Inner<C, S>)) -> Self {
        let Inner { id, harness, required, observers, stored, identity } = &*self.inner;
        let mut inner = Inner {
            id: id.clone(),
            harness: harness.clone(),
            required: required.clone(),
            observers: observers.clone(),
            stored: stored.clone(),
            identity: Arc::clone(identity),
        };
        change(&mut inner);
        Self { inner: Arc::new(inner) }
    }

    /// Requests a run of a new session, or of the next turn of an ended one: `input` is folded into
    /// the state, and the loop begins at its start. `slots` are the runtime slots (`()` if the
    /// context has none).
    ///
    /// # Errors
    /// Awaiting it returns a [`RunError`] if the session's id is invalid, a reducer panics on the
    /// input, or the session cannot take an input now. A step that fails is an [`Outcome`].
    pub fn run(&self, input: S::Update, slots: impl RuntimeSlots<C>) -> RunRequest<S> {
        let (agent, slots) = (self.clone(), slots.filled());
        RunRequest::new(self.options(), move |launched| {
            if let Some(storage) = agent.storage() {
                let taker = agent.taker(storage, slots, launched);
                return Box::pin(recovery::run(taker, input));
            }
            agent.boxed(launched, slots, |agent, run| agent.begin(input, run))
        })
    }

    /// Requests a run that resumes a session: with answers to its open interrupts, or with
    /// [`Answers::none`] after a stop, a failure or a reached budget.
    ///
    /// `session` is the outcome itself (`&outcome`, `&waiting`), which works in this process, or the
    /// session's id, which needs a store. All answers are checked before anything changes. If some interrupts
    /// stay open, the answers are kept and the run settles as interrupted again.
    ///
    /// ```
    /// # use harness::prelude::*;
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Doc { sent: bool }
    /// # #[derive(Question, Serialize, Deserialize)] #[question(answer = bool)] struct Send { to: String }
    /// # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Ask }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let harness = Harness::<(), Doc>::builder("d").start(Step::Ask).steps(|define, step| match step {
    /// #     Step::Ask => define
    /// #         .ask(|_doc, _cx| async move { Ok(Send { to: "all".into() }) })
    /// #         .answer(|_doc, _cx, said| async move { Ok(Doc::update().sent(said.answer)) }).end(),
    /// # }).build()?;
    /// # let agent = harness.agent("a", ());
    /// if let Outcome::Interrupted(waiting) = agent.run(Doc::update(), ()).await? {
    ///     let question = waiting.pending::<Send>()?;
    ///     let answers = question.answer(question.question.to == "all").by("sam");
    ///     let ended = agent.resume(&waiting, answers, ()).await?.ended()?;
    ///     assert!(ended.state.sent);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// Awaiting it returns a [`RunError`], and changes nothing, if the agent has no store in which to
    /// find an id, the session is not at rest in that outcome, or an answer
    /// [is refused](RunError::answer_error).
    pub fn resume(
        &self,
        session: impl Resumable<S>,
        answers: Answers,
        slots: impl RuntimeSlots<C>,
    ) -> RunRequest<S> {
        let (agent, slots) = (self.clone(), slots.filled());
        let Resume(source) = session.into();
        let mut options = self.options();
        options.resumed = true;
        match &source {
            Source::Rest(rest) => options.session = Ok(rest.id.clone()),
            Source::Id(id) => options.session = SessionId::new(id),
            Source::Ended(id) => options.session = Ok(id.clone()),
        }
        RunRequest::new(options, move |launched| match (source, agent.storage()) {
            (Source::Rest(rest), _) if !rest.stored => {
                agent.boxed(launched, slots, |agent, run| agent.take(rest, answers, run))
            }
            (Source::Ended(_), None) => {
                Box::pin(ready(Err(Kind::NotWaiting(launched.session).into())))
            }
            (_, Some(storage)) => {
                let taker = agent.taker(storage, slots, launched);
                Box::pin(recovery::resume(taker, answers))
            }
            (_, None) => Box::pin(ready(Err(Kind::NoStore(launched.session).into()))),
        })
    }

    /// The outcome of a stored session as it is. Nothing runs.
    pub(crate) fn at_rest(&self, session: String, slots: C::Runtime) -> RunRequest<S> {
        let (agent, mut options) = (self.clone(), self.options());
        options.session = SessionId::new(session);
        RunRequest::new(options, move |launched| match agent.storage() {
            Some(storage) => {
                let taker = agent.taker(storage, slots, launched);
                Box::pin(recovery::at_rest(taker))
            }
            None => Box::pin(ready(Err(Kind::NoStore(launched.session).into()))),
        })
    }

    fn options(&self) -> Options {
        Options {
            graph: self.inner.harness.graph().clone(),
            session: Ok(SessionId::fresh()),
            resumed: false,
            observers: self.inner.observers.clone(),
            budget: None,
            on_busy: OnBusy::default(),
            input_id: None,
            withdraw: false,
            trace: None,
            detached: false,
            tokens: false,
            breakpoints: Vec::new(),
            elsewhere: None,
        }
    }

    fn context(&self, slots: C::Runtime) -> C {
        let Inner { harness, required, .. } = &*self.inner;
        C::assemble(harness.fixed.clone(), required.clone(), slots)
    }

    /// The agent, with what it needs to run a session of its store. In a box, as it passes through
    /// several futures.
    fn taker(&self, storage: Storage, slots: C::Runtime, launched: Launched) -> Box<Taker<C, S>> {
        Box::new(Taker {
            agent: self.id().clone(),
            program: Arc::clone(&self.inner.harness.program),
            identity: Arc::clone(self.identity()),
            storage,
            resumer: Arc::new(self.clone()),
            context: self.context(slots),
            launched,
        })
    }

    /// Runs a session that lives in this process.
    fn boxed(
        &self,
        launched: Launched,
        slots: C::Runtime,
        enter: impl FnOnce(&Self, &RunId) -> Result<Here<S>, Kind>,
    ) -> BoxFuture<Result<Outcome<S>, RunError>> {
        let Here { resting, begin, home } = match enter(self, &launched.run) {
            Ok(here) => here,
            Err(refused) => return Box::pin(ready(Err(refused.into()))),
        };
        let Resting { session, state } = resting;
        let launched = launch(Launch {
            agent: self.id().clone(),
            program: Arc::clone(&self.inner.harness.program),
            resumer: Arc::new(self.clone()),
            context: self.context(slots),
            launched,
            session,
            state,
            journal: None,
            begin,
            home,
            span: None,
        });
        Box::pin(async move { Ok(launched.await) })
    }

    /// A new session: the default state, with the input folded in.
    fn begin(&self, input: S::Update, run: &RunId) -> Result<Here<S>, Kind> {
        let reduced = catch_unwind(AssertUnwindSafe(|| {
            let (mut state, mut ops) = (S::default(), Ops::off());
            state.apply(input, &mut ops);
            ops.finish().map(|_| state)
        }));
        let state = reduced.map_err(|panic| Kind::InputPanicked(words(&*panic)))?;
        let state = state.map_err(|error| Kind::InputRefused(error.to_string()))?;
        let identity = self.identity();
        let (graph, schema) = (Arc::clone(&identity.fingerprint), Arc::clone(&identity.schema));
        let mut session: Session<usize> =
            Session::open(self.id().clone(), Salt::random(), graph, schema, None);
        let start = self.inner.harness.graph().wiring.start;
        let turn = RunStarted::turn(run.clone(), start, Vec::new(), None, InboxSeq(0));
        apply(&mut session, [Change::RunStarted(Box::new(turn))])?;
        let resting = Resting { session, state: Arc::new(state) };
        Ok(Here { resting, begin: Begin::default(), home: None })
    }

    /// Takes a session out of its outcome, with the answers recorded. If they are refused, it stays
    /// there unchanged.
    fn take(&self, rest: Rest<S>, answers: Answers, run: &RunId) -> Result<Here<S>, Kind> {
        let mut slot = rest.slot.lock();
        let Some(resting) = slot.take() else { return Err(Kind::NotAtRest(rest.id)) };
        match self.resolutions(&rest.id, &resting.session, answers) {
            Ok(resolved) => {
                let mut session = resting.session;
                let begin = Begin::resuming(&session, Answered::of(&session, &resolved));
                let started = Change::RunStarted(Box::new(RunStarted::resumed(run.clone())));
                let resolved = resolved.into_iter().map(|it| Change::Resolved(Box::new(it)));
                apply(&mut session, std::iter::once(started).chain(resolved))?;
                drop(slot);
                let resting = Resting { session, state: resting.state };
                Ok(Here { resting, begin, home: Some(rest.slot) })
            }
            Err(refused) => {
                *slot = Some(resting);
                Err(refused)
            }
        }
    }

    /// How answers resolve the interrupts of a session, and which have expired.
    fn resolutions(
        &self,
        id: &SessionId,
        session: &Session<usize>,
        answers: Answers,
    ) -> Result<Vec<Resolved>, Kind> {
        let wiring = &self.inner.harness.graph().wiring;
        let refused = |cause| Kind::Answer { session: id.clone(), cause };
        let now = UtcMillis::now();
        let (mut resolved, mut earlier) = (Vec::new(), HashMap::new());
        for answer in answers.list {
            let fits = |asked: &_, value: &_| unfit(wiring, asked, value);
            match judge(session, &answer, &mut earlier, fits, now).map_err(refused)? {
                Verdict::Repeats => {}
                Verdict::Resolves(value, digest) => {
                    let Answer { id, by, at, .. } = answer;
                    let trace = crate::observe::trace::origin();
                    let resolution = Resolution::Answered { value, digest, by, at, trace };
                    resolved.push(Resolved { id, resolution, inbox: InboxSeq(0) });
                }
                Verdict::Left(_) => {
                    return Err(refused(crate::inbox::AnswerError::not_asked(session, answer.id)));
                }
            }
        }
        let expired = session.interrupts.iter().filter(|asked| asked.is_overdue(now));
        let expired = expired.map(|asked| Resolved {
            id: asked.interrupt.id.clone(),
            resolution: Resolution::Expired,
            inbox: InboxSeq(0),
        });
        resolved.extend(expired);
        Ok(resolved)
    }
}

/// A session that lives in this process, about to run.
struct Here<S> {
    resting: Resting<S>,
    begin: Begin,
    /// Where it returns to if the run is dropped.
    home: Option<crate::run::Slot<S>>,
}

fn apply(
    session: &mut Session<usize>,
    changes: impl IntoIterator<Item = Change<usize>>,
) -> Result<(), Kind> {
    for change in changes {
        let entry = Entry { at: UtcMillis::default(), spent: None, change };
        session.apply(&entry).map_err(|error| Kind::NotBegun(error.to_string()))?;
    }
    Ok(())
}

impl<C: Context, S: State> Clone for Agent<C, S> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<C: Context, S: State> fmt::Debug for Agent<C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("id", &self.inner.id)
            .field("harness", &self.inner.harness.graph().name())
            .finish_non_exhaustive()
    }
}
