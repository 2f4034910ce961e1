//! A step that calls another agent.

use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use serde_json::Value;

use crate::compat::decode_state;
use crate::id::{AgentId, SessionId};
use crate::session::{ChildDone, End, check_value};
use crate::state::{State, to_json};
use crate::step::{BoxFuture, FailureKind, Scope};

use super::RunError;
use super::call_error::{CallError, Kind};
use super::child::{Attach, Begun, Ticket, begin};
use super::error::Kind as RunKind;
use super::outcome::{Ended, Outcome};
use super::stop::StopSignal;
use crate::text::words;

/// Runs the child.
type Launch<S> = Box<dyn FnOnce(Attach) -> BoxFuture<Result<Outcome<S>, RunError>> + Send>;

/// A call of another agent by a step. [`Cx::call`](crate::Cx::call) creates it. Dropped before it is
/// done, it cancels the child's run; a later attempt of the step resumes the child.
#[must_use = "an agent is called when this is awaited"]
pub struct Call<S: State> {
    agent: AgentId,
    key: Option<String>,
    stage: Stage<S>,
}

enum Stage<S: State> {
    Planned(Box<Plan<S>>),
    AtWork(BoxFuture<Result<Ended<S>, CallError>>),
    Over,
}

struct Plan<S: State> {
    scope: Scope,
    input: Result<Value, RunError>,
    /// Whether the agent has runtime slots.
    slots: bool,
    launch: Launch<S>,
}

impl<S: State> Call<S> {
    pub(crate) fn new(
        scope: Scope,
        agent: AgentId,
        input: Result<Value, RunError>,
        slots: bool,
        launch: Launch<S>,
    ) -> Self {
        let stage = Stage::Planned(Box::new(Plan { scope, input, slots, launch }));
        Self { agent, key: None, stage }
    }

    /// Sets the key of the call. The default is the id of the agent: a step that calls an agent several
    /// times gives each call its own.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }
}

impl<S: State> Future for Call<S> {
    type Output = Result<Ended<S>, CallError>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        if let Stage::Planned(_) = self.stage
            && let Stage::Planned(plan) = std::mem::replace(&mut self.stage, Stage::Over)
        {
            let agent = self.agent.clone();
            let key = self.key.take().unwrap_or_else(|| agent.to_string());
            self.stage = Stage::AtWork(plan.perform(agent, key).boxed());
        }
        let Stage::AtWork(work) = &mut self.stage else { return Poll::Pending };
        let ended = work.as_mut().poll(task);
        if ended.is_ready() {
            self.stage = Stage::Over;
        }
        ended
    }
}

// The polled future is boxed; no other field is pinned.
impl<S: State> Unpin for Call<S> {}

impl<S: State> fmt::Debug for Call<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agent, key, .. } = self;
        f.debug_struct("Call").field("agent", agent).field("key", key).finish_non_exhaustive()
    }
}

/// Cancels a child whose call is dropped.
struct CancelOnDrop(StopSignal);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl<S: State> Plan<S> {
    async fn perform(self, agent: AgentId, key: String) -> Result<Ended<S>, CallError> {
        let Self { scope, input, slots, launch } = self;
        let not_run = |session: &SessionId, error| {
            CallError::new(&agent, Kind::NotRun { session: session.clone(), error })
        };
        let input = input.map_err(|error| not_run(scope.session_id(), error))?;
        let ticket = match begin(&scope, &key, &agent, &input)? {
            Begun::Done(session, done) => return result(&agent, session, *done),
            Begun::Open(ticket) => ticket,
        };
        ticket.admit(slots)?;
        let session = ticket.session().clone();
        let on_drop = CancelOnDrop(ticket.stop.clone());
        // A task of its own, so that an attempt that is given up waits for it.
        let done = match tokio::spawn(run(*ticket, input, launch)).await {
            Ok(done) => done?,
            Err(error) => {
                let kind = match error.try_into_panic() {
                    Ok(panic) => RunKind::Panicked(words(&*panic)),
                    Err(_) => RunKind::RuntimeGone,
                };
                return Err(not_run(&session, kind.into()));
            }
        };
        match done {
            Some(done) => result(&agent, session, done),
            // The attempt is given up, and the step entered again.
            None => {
                drop(on_drop);
                pending().await
            }
        }
    }
}

/// Runs a child until its run settles. `None` if its turn is not over then.
async fn run<S: State>(
    mut ticket: Ticket,
    input: Value,
    launch: Launch<S>,
) -> Result<Option<ChildDone>, CallError> {
    if ticket.is_stopped() {
        ticket.wait();
        return Ok(None);
    }
    ticket.save().await?;
    if ticket.start_elsewhere(&input).await? {
        ticket.wait();
        return Ok(None);
    }
    let Some(outcome) = ticket.watch(launch(ticket.attach(input))).await else {
        ticket.wait();
        return Ok(None);
    };
    let session = || ticket.session().clone();
    let outcome =
        outcome.map_err(|error| ticket.fail(Kind::NotRun { session: session(), error }))?;
    let spent = *outcome.spent();
    let (run, steps, end, state, finally_failure) = match outcome {
        Outcome::Ended(ended) => {
            let state = encoded(&ended.state)
                .map_err(|why| ticket.fail(Kind::Undecodable { session: session(), why }))?;
            let end = ended.end();
            (ended.run, ended.steps, end, state, ended.finally_failure)
        }
        // Its session is where it was.
        Outcome::Failed(failed) if is_unrecorded(failed.failure.kind) => {
            return Err(ticket.fail(Kind::NotRecorded(failed.failure.to_string())));
        }
        Outcome::Failed(failed) => {
            let end = End::Failed { failure: failed.failure };
            (failed.run, 0, end, Value::Null, failed.finally_failure)
        }
        Outcome::Exhausted(it) => {
            (it.run, 0, End::Exhausted { limit: it.limit }, Value::Null, it.finally_failure)
        }
        Outcome::Interrupted(_) if !ticket.is_stored() => {
            return Err(ticket.fail(Kind::NoStore { session: session() }));
        }
        Outcome::Interrupted(waiting) => {
            ticket.park(spent, waiting.until).await?;
            return Ok(None);
        }
        Outcome::Waiting(waiting) => {
            ticket.park(spent, waiting.until).await?;
            return Ok(None);
        }
        Outcome::Stopped(_) | Outcome::Queued(_) => {
            ticket.park(spent, None).await?;
            return Ok(None);
        }
    };
    let done =
        |key, item, spent| ChildDone { key, item, run, end, state, steps, spent, finally_failure };
    ticket.done(done, spent).await.map(Some)
}

/// The JSON of a state, which a log can keep.
fn encoded<S: State>(state: &S) -> Result<Value, String> {
    let state = to_json(state).map_err(|error| error.to_string())?;
    check_value(&state).map_err(|error| error.to_string())?;
    Ok(state)
}

/// Whether a run failed to record how it settled.
fn is_unrecorded(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Store | FailureKind::LeaseLost | FailureKind::NotReplayable)
}

/// What a child comes to for the step that called it.
fn result<S: State>(
    agent: &AgentId,
    session: SessionId,
    done: ChildDone,
) -> Result<Ended<S>, CallError> {
    match done.end {
        End::Failed { failure } => Err(CallError::new(agent, Kind::Failed { session, failure })),
        End::Exhausted { limit } => Err(CallError::new(agent, Kind::Exhausted { session, limit })),
        _ => match decode_state::<S>(&done.state) {
            Ok(state) => Ok(Ended::of_child(state, session, done)),
            Err(error) => {
                let why = error.to_string();
                Err(CallError::new(agent, Kind::Undecodable { session, why }))
            }
        },
    }
}
