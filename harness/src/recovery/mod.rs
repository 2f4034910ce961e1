//! Recovering a stored session: claim it, read it, check that the loop fits, and enter it again.

mod child;
mod claimed;
mod due;
mod queue;
mod refuse;
mod resume;
mod turn;

use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::Either;

use crate::compat::{Compatibility, Compatible, LoopIdentity, check};
use crate::context::Context;
use crate::graph::{Program, Wiring};
use crate::id::{AgentId, RunId, SessionId};
use crate::journal::{Durability, Journal, LeaseGuard, Start, When, read};
use crate::run::{
    Begin, Child, Driver, Kind, Launched, Outcome, Resumer, RunCore, RunError, RunSpan, Settlement,
    StopSignal,
};
use crate::session::{AsNamed, Change, Entry, Recorded, Session};
use crate::state::State;
use crate::step::{Ids, RunScope};
use crate::store::SessionStore;

pub(crate) use child::attach;
pub(crate) use due::{Admission, Admitted, Worked, run_due};
pub(crate) use queue::Inputs;
pub(crate) use resume::resume;
pub(crate) use turn::{encoded, run};

/// Where an agent keeps its sessions, and how.
#[derive(Clone)]
pub(crate) struct Storage {
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) durability: Durability,
    pub(crate) ttl: Duration,
    pub(crate) compatibility: Compatibility,
}

/// An agent that is about to recover a session.
pub(crate) struct Taker<C: Context, S: State> {
    pub(crate) agent: AgentId,
    pub(crate) program: Arc<Program<C, S>>,
    pub(crate) identity: Arc<LoopIdentity>,
    pub(crate) storage: Storage,
    pub(crate) resumer: Arc<dyn Resumer<S>>,
    pub(crate) context: C,
    pub(crate) launched: Launched,
}

impl<C: Context, S: State> Taker<C, S> {
    fn wiring(&self) -> &Wiring {
        &self.program.graph.wiring
    }

    fn session(&self) -> &SessionId {
        &self.launched.session
    }

    fn store(&self) -> &dyn SessionStore {
        &*self.storage.store
    }

    /// The session must be of this agent, and one that its loop can resume.
    fn check(&self, recorded: &Recorded) -> Result<Compatible<S>, Kind> {
        self.owns(recorded)?;
        Ok(check::<S>(recorded, &self.identity.target(self.storage.compatibility))?)
    }

    fn owns(&self, recorded: &Recorded) -> Result<(), Kind> {
        let found = &recorded.session.agent;
        if *found == self.agent {
            return Ok(());
        }
        let (session, expected) = (self.session().clone(), self.agent.clone());
        Err(Kind::WrongAgent { session, expected, found: found.clone() })
    }

    /// The outcome of a session that nothing is done to.
    fn at_rest(&self, session: &Session, state: S) -> Taken<C, S> {
        let outcome = outcome_at_rest(self.session(), session, state, Arc::clone(&self.resumer));
        Taken::AtRest(Box::new(outcome))
    }

    /// Records how the run begins.
    async fn record_begin(self: Box<Self>, entered: Entered<S>) -> Result<Taken<C, S>, RunError> {
        let Entered { guard, start, mut session, opened, mut changes, state, when, begin, input } =
            entered;
        let span = run_span(&self.agent, self.program.graph.name(), &self.launched, &session);
        for change in &mut changes {
            if let Change::RunStarted(run) = change {
                run.trace.clone_from(&span.trace);
            }
        }
        let journal = Journal::new(guard, start, self.storage.durability);
        let recorded = opened.map_or(Ok(()), |opened| journal.open(*opened)).and_then(|()| {
            changes
                .into_iter()
                .try_for_each(|change| journal.record(&mut session, Entry::now(change), &AsNamed))
        });
        let written = match recorded {
            Ok(()) => journal.commit(when).await,
            Err(broken) => Err(broken),
        };
        if let Err(broken) = written {
            let _ = journal.release().await;
            return Err(Kind::unrecorded(broken).into());
        }
        if let Some(input) = input
            && let Err(error) = self.store().send(self.session(), &[input]).await
        {
            tracing::warn!(session = %self.session(), %error, "failed to keep the id of an input");
        }
        if session.settled.is_some() {
            let _ = journal.release().await;
            return Ok(self.at_rest(&session, state));
        }
        let Some(session) = session.indexed(self.wiring()) else {
            let _ = journal.release().await;
            return Err(
                Kind::NotBegun("the session stands at a step that the loop lacks".into()).into()
            );
        };
        let Self { agent, program, resumer, context, launched, .. } = *self;
        let (state, journal, home) = (Arc::new(state), Some(journal), None);
        Ok(Taken::Run(Box::new(Launch {
            agent,
            program,
            resumer,
            context,
            launched,
            session,
            state,
            journal,
            begin,
            home,
            span: Some(span),
        })))
    }
}

/// The outcome of a session as it is. Nothing runs.
pub(crate) async fn at_rest<C: Context, S: State>(
    taker: Box<Taker<C, S>>,
) -> Result<Outcome<S>, RunError> {
    let id = taker.session();
    let found = read(taker.store(), id).await.map_err(|error| refuse::read_error(id, error))?;
    let recorded = found.ok_or_else(|| Kind::NotFound(id.clone()))?.recorded;
    let compatible = taker.check(&recorded)?;
    Ok(taker.at_rest(&recorded.session, compatible.state).outcome().await)
}

/// The outcome of a session in a store that no run is at work on.
fn outcome_at_rest<S: State>(
    id: &SessionId,
    session: &Session,
    state: S,
    resumer: Arc<dyn Resumer<S>>,
) -> Outcome<S> {
    let settled = session.settled.as_deref();
    let end = settled.map_or(crate::session::End::Cancelled, |it| it.end.clone());
    let settlement = Settlement {
        session: id.clone(),
        run: session.run.clone().unwrap_or_else(RunId::fresh),
        end,
        finally_failure: settled.and_then(|it| it.finally_failure.clone()),
        state: Some(Arc::new(state)),
        spent: session.spent,
        steps: session.cursor.steps,
        interrupts: session.open_interrupts().cloned().collect(),
        due: session.due(),
        children: Child::awaited(session),
        resting: None,
        durable: true,
        home: None,
    };
    settlement.into_outcome(&StopSignal::default(), || resumer)
}

/// A recovered session.
enum Taken<C: Context, S: State> {
    /// There is nothing to do: its outcome.
    AtRest(Box<Outcome<S>>),
    /// A run is about to begin.
    Run(Box<Launch<C, S>>),
}

impl<C: Context, S: State> Taken<C, S> {
    /// A live run keeps no room for what it was launched with.
    fn outcome(self) -> impl Future<Output = Outcome<S>> + Send {
        match self {
            Self::AtRest(outcome) => Either::Left(ready(*outcome)),
            Self::Run(run) => Either::Right(launch(*run)),
        }
    }
}

/// Everything a run needs.
pub(crate) struct Launch<C: Context, S: State> {
    pub(crate) agent: AgentId,
    pub(crate) program: Arc<Program<C, S>>,
    pub(crate) resumer: Arc<dyn Resumer<S>>,
    pub(crate) context: C,
    pub(crate) launched: Launched,
    pub(crate) session: Session<usize>,
    pub(crate) state: Arc<S>,
    pub(crate) journal: Option<Journal>,
    pub(crate) begin: Begin,
    pub(crate) home: Option<crate::run::Slot<S>>,
    /// None if it has yet to be made.
    pub(crate) span: Option<RunSpan>,
}

/// Drives a run to its outcome.
pub(crate) fn launch<C: Context, S: State>(
    launch: Launch<C, S>,
) -> impl Future<Output = Outcome<S>> + Send {
    use tracing::Instrument as _;

    let span = match launch.span {
        Some(span) => span,
        None => {
            let name = launch.program.graph.name();
            run_span(&launch.agent, name, &launch.launched, &launch.session)
        }
    };
    let Launch { agent, program, resumer, context, launched, session, state, .. } = launch;
    let Launch { journal, begin, home, .. } = launch;
    let ids = ids(&agent, &launched);
    let Launched { parent, fanout, budget, breakpoints, elsewhere, worker, stop, .. } = launched;
    let child = parent.clone().map(|parent| Box::new((parent, ids.clone())));
    let graph = program.graph.clone();
    let mut core = RunCore::new(ids, graph, fanout, stop.clone(), journal, session, parent);
    core.spans = span.spans();
    (core.elsewhere, core.worker) = (elsewhere, worker);
    let mut driver = Box::new(Driver::new(program, context, core, state, home, begin, budget));
    driver.breakpoints = breakpoints;
    let scope = RunScope::new(driver.effects());
    let run = async move {
        let child = child.map(|child| Box::new(child.0.begin(&child.1)));
        let settlement = driver.drive().await;
        if let Some(child) = child {
            child.settle(&settlement.end, settlement.spent);
        }
        settlement.into_outcome(&stop, || resumer)
    };
    scope.wrap(run).instrument(span.span)
}

fn ids(agent: &AgentId, launched: &Launched) -> Ids {
    let Launched { session, run, parent, .. } = launched;
    let parent = parent.as_ref().map(|it| it.run().clone());
    Ids { agent: agent.clone(), session: session.clone(), run: run.clone(), parent }
}

/// Makes the span of a run of `session`.
fn run_span<P: Ord>(
    agent: &AgentId,
    harness: &str,
    launched: &Launched,
    session: &Session<P>,
) -> RunSpan {
    let parent = launched.parent.as_ref();
    let within = parent.map_or(&launched.within, |parent| parent.span());
    // A step of this process is its parent.
    let caller = session.parent.as_ref().filter(|_| parent.is_none());
    let caller = caller.and_then(|caller| caller.trace.as_ref());
    let (origin, before) = (launched.trace.clone(), session.trace.as_ref());
    RunSpan::open(&ids(agent, launched), harness, within, origin, before, caller)
}

/// A session that is entered: what to record, and what the run begins with.
struct Entered<S> {
    guard: LeaseGuard,
    start: Start,
    session: Box<Session>,
    /// The first entry of a new session.
    opened: Option<Box<crate::session::Opened>>,
    changes: Vec<Change>,
    state: S,
    when: When,
    begin: Begin,
    /// The message that keeps the id of the input.
    input: Option<crate::store::Message>,
}
