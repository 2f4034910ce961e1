//! An agent: a harness with a name and its required slots, ready to run sessions.

mod history;
mod input;
mod lineage;
mod stored;
mod validate;

use std::any::type_name;
use std::fmt;
use std::future::ready;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tracing::Span;

use crate::context::Context;
use crate::declare::Harness;
use crate::graph::Wiring;
use crate::id::{AgentId, SessionId};
use crate::journal::{Durability, Journal, OnBusy};
use crate::log::Fit;
use crate::observe::{Observer, Observers};
use crate::run::{
    Brakes, Driver, ErasedSlots, Held, Kind, Launched, Options, Outcome, Resume, Resumer, RunCore,
    RunError, RunRequest, Running, Settlement, Slot, Source, Taken, accept, words,
};
use crate::session::Session;
use crate::state::{Ops, State};
use crate::step::{Answers, BoxFuture, Ids};
use crate::store::SessionStore;

use lineage::Lineage;

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
    stored: Option<Stored>,
    lineage: Arc<OnceLock<Lineage>>,
}

/// Where an agent keeps its sessions, and how.
#[derive(Clone)]
struct Stored {
    store: Arc<dyn SessionStore>,
    durability: Durability,
    ttl: Duration,
    fit: Fit,
}

/// How long a lease is held at a time, unless an agent says otherwise.
const LEASE: Duration = Duration::from_secs(30);

impl<C: Context, S: State> Harness<C, S> {
    /// Makes an agent of this harness: gives it an id and its required slots (`()` if the context
    /// has none).
    pub fn agent(&self, id: impl Into<String>, required: C::Required) -> Agent<C, S> {
        Agent {
            inner: Arc::new(Inner {
                id: AgentId::new(id),
                harness: self.clone(),
                required,
                observers: self.observers.clone(),
                stored: None,
                lineage: Arc::default(),
            }),
        }
    }
}

impl<C: Context, S: State> Agent<C, S> {
    /// The agent's id.
    pub fn id(&self) -> &AgentId {
        &self.inner.id
    }

    /// Adds an observer of every run of this agent. May be called again; each observer gets every
    /// event.
    #[must_use = "this gives an agent with the observer"]
    pub fn observe(self, observer: impl Observer) -> Self {
        self.change(|inner| inner.observers.add(observer))
    }

    /// Keeps the agent's sessions in `store`: each step's result is recorded there before the next
    /// step begins, and any process that has the store and this agent can go on with a session,
    /// by its id.
    ///
    /// ```
    /// # use harness::prelude::*;
    /// use harness::store::MemoryStore;
    ///
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Doc { sent: bool }
    /// # #[derive(Question, Serialize, Deserialize)] #[question(answer = bool)] struct Send { to: String }
    /// # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Ask }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let harness = Harness::<(), Doc>::builder("d").start(Step::Ask).steps(|define, step| match step {
    /// #     Step::Ask => define
    /// #         .ask(|_doc, _cx| async move { Ok(Send { to: "all".into() }) })
    /// #         .answer(|_doc, _cx, said| async move { Ok(Doc::update().sent(said.answer)) }).end(),
    /// # }).build()?;
    /// let store = MemoryStore::new(); // or a `FileStore`, which outlives the process
    /// let agent = harness.agent("a", ()).store(store.clone());
    /// let outcome = agent.run(Doc::update(), ()).session("letter-7").await?;
    /// # let Outcome::Interrupted(waiting) = outcome else { panic!() };
    /// # let id = waiting.questions[0].id.clone();
    ///
    /// // Later, elsewhere, with the question's id:
    /// let agent = harness.agent("a", ()).store(store);
    /// let answer = Answers::json(id, true.into()).by("sam");
    /// let ended = agent.resume("letter-7", answer, ()).await?.ended()?;
    /// assert!(ended.state.sent);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use = "this gives an agent with the store"]
    pub fn store(self, store: impl SessionStore) -> Self {
        self.shared_store(Arc::new(store))
    }

    /// The same, for a store that is shared already.
    #[must_use = "this gives an agent with the store"]
    pub fn shared_store(self, store: Arc<dyn SessionStore>) -> Self {
        self.change(|inner| {
            let before = inner.stored.take();
            let Stored { durability, ttl, fit, .. } = before.unwrap_or_else(|| Stored {
                store: Arc::clone(&store),
                durability: Durability::default(),
                ttl: LEASE,
                fit: Fit::default(),
            });
            inner.stored = Some(Stored { store, durability, ttl, fit });
        })
    }

    /// Says when commits are made durable; without it, each one before the next step. Has no
    /// meaning before [`store`](Agent::store).
    #[must_use = "this gives an agent with the mode"]
    pub fn durability(self, durability: Durability) -> Self {
        self.change(|inner| {
            if let Some(stored) = &mut inner.stored {
                stored.durability = durability;
            }
        })
    }

    /// Says how long a session is held at a time; without it, 30 seconds. The lease is renewed
    /// three times as often; if this process stops, others wait for so long before they go on.
    /// Has no meaning before [`store`](Agent::store).
    #[must_use = "this gives an agent with the lease time"]
    pub fn lease(self, ttl: Duration) -> Self {
        self.change(|inner| {
            if let Some(stored) = &mut inner.stored {
                stored.ttl = ttl.max(Duration::from_millis(1));
            }
        })
    }

    /// Says how much of a loop may have changed since a session was written; without it, all that
    /// the session does not depend on. Has no meaning before [`store`](Agent::store).
    #[must_use = "this gives an agent with the rule"]
    pub fn fit(self, fit: Fit) -> Self {
        self.change(|inner| {
            if let Some(stored) = &mut inner.stored {
                stored.fit = fit;
            }
        })
    }

    /// What sessions are compared with; worked out when it is first asked for.
    fn lineage(&self) -> &Lineage {
        self.inner.lineage.get_or_init(|| Lineage::of(&self.inner.harness.graph().wiring))
    }

    fn change(self, change: impl FnOnce(&mut Inner<C, S>)) -> Self {
        let Inner { id, harness, required, observers, stored, lineage } = &*self.inner;
        let mut inner = Inner {
            id: id.clone(),
            harness: harness.clone(),
            required: required.clone(),
            observers: observers.clone(),
            stored: stored.clone(),
            lineage: Arc::clone(lineage),
        };
        change(&mut inner);
        Self { inner: Arc::new(inner) }
    }

    /// Asks for a run of a new session: `input` is reduced into the default state, and the loop
    /// begins at its start. `slots` are the runtime slots (`()` if the context has none).
    ///
    /// # Errors
    /// Awaiting it gives a [`RunError`](crate::RunError) if the session's id is illegal, or a reducer panics on the
    /// input. A step that fails is an [`Outcome`].
    pub fn run(&self, input: S::Update, slots: C::Runtime) -> RunRequest<S> {
        let agent = self.clone();
        if self.inner.stored.is_some() {
            return RunRequest::new(self.options(), move |launched| {
                Box::pin(stored::run(agent, input, slots, launched))
            });
        }
        RunRequest::new(self.options(), move |launched| {
            let begun = begin(input, launched.session.clone(), &agent.inner.harness.graph().wiring)
                .map(|session| agent.driver(launched, session, None, None, None, slots));
            Begun::boxed(begun)
        })
    }

    /// Asks for a run that goes on with a session: with the answers its questions wait for, or
    /// with [`Answers::none`] after a stop, a failure or a reached budget.
    ///
    /// `session` is the outcome itself (`&waiting`), which works in this process, or the session's
    /// id, which needs a store. All answers are checked before anything changes; if some questions
    /// stay open, the answers given are kept and the run settles as interrupted again.
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
    /// Awaiting it gives a [`RunError`](crate::RunError), and changes nothing, if there is no store to find an id
    /// in, the session is not at rest in that outcome, or an answer is unknown, ill-typed, for
    /// another question, or contradicts an earlier one.
    pub fn resume(
        &self,
        session: impl Into<Resume<S>>,
        answers: Answers,
        slots: C::Runtime,
    ) -> RunRequest<S> {
        let agent = self.clone();
        let Resume(source) = session.into();
        let mut options = self.options();
        options.resumed = true;
        match &source {
            Source::Held(held) => options.session = Ok(held.id.clone()),
            Source::Id(id) => options.session = SessionId::new(id),
        }
        if self.inner.stored.is_some() && !matches!(&source, Source::Held(held) if !held.stored) {
            return RunRequest::new(options, move |launched| {
                Box::pin(stored::resume(agent, answers, slots, launched))
            });
        }
        RunRequest::new(options, move |launched| {
            let taken = match source {
                Source::Held(held) => take(held, answers),
                Source::Id(_) => Err(Kind::NoStore(launched.session.clone())),
            };
            let begun = taken.map(|(session, (home, taken))| {
                agent.driver(launched, session, Some(home), Some(taken), None, slots)
            });
            Begun::boxed(begun)
        })
    }

    fn options(&self) -> Options {
        Options {
            session: Ok(SessionId::fresh()),
            resumed: false,
            observers: self.inner.observers.clone(),
            budget: None,
            on_busy: OnBusy::default(),
            input_id: None,
            withdraw: false,
            trace: None,
        }
    }

    /// Puts together what advances the session.
    fn driver(
        self,
        launched: Launched,
        session: Session<S>,
        home: Option<Slot<S>>,
        taken: Option<Vec<Taken>>,
        journal: Option<Box<Journal>>,
        slots: C::Runtime,
    ) -> Begun<C, S> {
        let Inner { id, harness, required, .. } = &*self.inner;
        let context = C::assemble(harness.fixed.clone(), required.clone(), slots);
        let program = Arc::clone(&harness.program);
        let span = tracing::info_span!(
            target: "harness",
            "harness.run",
            harness = program.graph.name(),
            agent = %id,
            session = %session.id,
            run = %launched.run,
        );
        let ids = Ids {
            agent: id.clone(),
            session: launched.session,
            run: launched.run,
            parent: launched.parent,
        };
        let graph = harness.graph().clone();
        let budget = launched.budget.map(Box::new);
        let core = RunCore::new(ids, graph, launched.fanout, launched.brakes, journal);
        let driver = Box::new(Driver::new(program, context, core, session, home, taken, budget));
        Begun { agent: self, driver, span }
    }
}

/// Where a session comes from, and the answers it was resumed with.
type Home<S> = (Slot<S>, Vec<Taken>);

/// A run that has not taken its first step.
struct Begun<C: Context, S: State> {
    agent: Agent<C, S>,
    driver: Box<Driver<C, S>>,
    span: Span,
}

impl<C: Context, S: State> Begun<C, S> {
    fn run(self) -> impl Future<Output = Result<Outcome<S>, RunError>> + Send {
        let Self { agent, driver, span } = self;
        Running::new(driver, span, move |settled: Box<Settlement<S>>, brakes: &Brakes| {
            settled.into_outcome(brakes, move || Arc::new(agent))
        })
    }

    fn boxed(begun: Result<Self, Kind>) -> BoxFuture<Result<Outcome<S>, RunError>> {
        match begun {
            Ok(begun) => Box::pin(begun.run()),
            Err(refused) => Box::pin(ready(Err(refused.into()))),
        }
    }
}

/// A new session: the default state, with the input reduced into it.
fn begin<S: State>(input: S::Update, id: SessionId, wiring: &Wiring) -> Result<Session<S>, Kind> {
    let reduced = catch_unwind(AssertUnwindSafe(|| {
        let mut state = S::default();
        state.apply(input, &mut Ops::off());
        state
    }));
    let state = reduced.map_err(|panic| Kind::InputPanicked(words(&*panic)))?;
    Ok(Session::new(id, state, wiring))
}

/// Takes a session out of its outcome, with the answers recorded; or leaves it there as it was.
fn take<S: State>(held: Held<S>, answers: Answers) -> Result<(Session<S>, Home<S>), Kind> {
    let (session, taken) = {
        let mut slot = held.slot.lock();
        let Some(mut session) = slot.take() else {
            return Err(Kind::NotAtRest(held.id));
        };
        match accept(&mut session, answers) {
            Ok(taken) => (session, taken),
            Err(refused) => {
                *slot = Some(session);
                return Err(refused);
            }
        }
    };
    Ok((session, (held.slot, taken)))
}

impl<C: Context, S: State> Resumer<S> for Agent<C, S> {
    fn resume(&self, held: Held<S>, answers: Answers, slots: ErasedSlots) -> RunRequest<S> {
        let mut options = self.options();
        options.session = Ok(held.id.clone());
        match slots.value.downcast::<C::Runtime>() {
            Ok(slots) => Agent::resume(self, Resume(Source::Held(held)), answers, *slots),
            Err(_) => {
                let refused = Kind::WrongSlots {
                    agent: self.id().to_string(),
                    expected: type_name::<C::Runtime>(),
                    found: slots.type_name,
                };
                RunRequest::new(options, move |_| Box::pin(async move { Err(refused.into()) }))
            }
        }
    }
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
