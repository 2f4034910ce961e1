//! An agent as a worker serves it, without the types of its state and slots.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::agent::Agent;
use crate::context::{Context, RuntimeSlots};
use crate::id::{AgentId, SessionId};
use crate::journal::{LeaseGuard, LeaseObserver};
use crate::recovery::Admission;
use crate::run::Outcome;
use crate::state::State;
use crate::step::{BoxFuture, FailureKind};
use crate::store::{Claimed, SessionStore};

/// Why the slots of a run could not be made, in the program's own terms. `?` makes it of any error.
pub type SlotsError = Box<dyn Error + Send + Sync>;

/// What came of a session that a worker has claimed.
pub(super) enum Done {
    /// A run was at work, or the session was settled.
    Progress,
    /// Nothing had to be done.
    Nothing,
    /// It was given back until a place is free.
    NotNow,
    /// It could not be run.
    Failed(String),
}

/// An agent that a worker serves.
pub(super) struct Served {
    pub(super) agent: AgentId,
    pub(super) store: Arc<dyn SessionStore>,
    pub(super) ttl: Duration,
    /// How many of its sessions may run at once.
    pub(super) room: Arc<Semaphore>,
    run: Box<dyn Fn(LeaseGuard, Claimed, Arc<dyn Admission>) -> BoxFuture<Done> + Send + Sync>,
}

impl Served {
    /// `None` if the agent has no store.
    pub(super) fn new<C, S, R, F, Fut>(agent: &Agent<C, S>, room: usize, slots: F) -> Option<Self>
    where
        C: Context,
        S: State,
        R: RuntimeSlots<C>,
        F: Fn(SessionId) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, SlotsError>> + Send + 'static,
    {
        let (store, ttl) = agent.work_storage()?;
        let (id, own) = (agent.id().clone(), agent.clone());
        let run = move |mut lease: LeaseGuard,
                        claimed: Claimed,
                        admission: Arc<dyn Admission>|
              -> BoxFuture<Done> {
            // The slots may take longer to make than the lease lasts.
            lease.keep(Arc::new(Unobserved));
            let (agent, making) = (own.clone(), slots(claimed.lease.session.clone()));
            Box::pin(async move {
                let slots = match making.await {
                    Ok(slots) => slots.filled(),
                    Err(error) => {
                        return Done::Failed(format!("its slots could not be made: {error}"));
                    }
                };
                match agent.work_on(slots, lease, claimed, admission).await {
                    Ok(None) => Done::NotNow,
                    Ok(Some(worked)) if worked.done => done(&worked.outcome),
                    Ok(Some(worked)) => match worked.outcome {
                        Outcome::Failed(failed) => Done::Failed(failed.failure.to_string()),
                        _ => Done::Nothing,
                    },
                    Err(error) => Done::Failed(words(&error)),
                }
            })
        };
        let room = Arc::new(Semaphore::new(room.clamp(1, Semaphore::MAX_PERMITS)));
        Some(Self { agent: id, store, ttl, room, run: Box::new(run) })
    }

    pub(super) fn run(
        &self,
        lease: LeaseGuard,
        claimed: Claimed,
        admission: Arc<dyn Admission>,
    ) -> BoxFuture<Done> {
        (self.run)(lease, claimed, admission)
    }
}

/// A run that settled is progress, unless it could not record how: then the session is still due.
fn done<S: State>(outcome: &Outcome<S>) -> Done {
    match outcome {
        Outcome::Failed(failed)
            if matches!(
                failed.failure.kind,
                FailureKind::Store | FailureKind::LeaseLost | FailureKind::NotReplayable
            ) =>
        {
            Done::Failed(failed.failure.to_string())
        }
        _ => Done::Progress,
    }
}

/// An error with its causes.
fn words(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words += &format!(": {error}");
        cause = error.source();
    }
    words
}

/// Observes a lease while no run has it.
struct Unobserved;

impl LeaseObserver for Unobserved {
    fn stop(&self) {}

    fn lost(&self) {}
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").field("agent", &self.agent).finish_non_exhaustive()
    }
}
