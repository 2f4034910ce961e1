//! What workers do for an agent, and what is left to them.

use std::any::type_name;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use crate::context::Context;
use crate::id::{RunId, SessionId};
use crate::journal::LeaseGuard;
use crate::recovery::{Admission, Inputs, Worked, attach, encoded, run_due};
use crate::run::{
    ChildStart, ErasedSlots, Kind, Outcome, Queued, Rest, Resume, Resumer, RunError, RunRequest,
    Source,
};
use crate::state::State;
use crate::step::{Answers, BoxFuture};
use crate::store::{Claimed, SessionStore};

use super::Agent;

impl<C: Context, S: State> Agent<C, S> {
    /// Leaves an input to the [workers](crate::worker) of this agent: the next turn of the session
    /// begins with it, once the turns of earlier inputs have ended. A session that does not exist is
    /// created. Needs a store, and no runtime slots: nothing runs here.
    ///
    /// When the future is done, the input survives what a [flushed](crate::store::Batch::flush) batch
    /// survives. [`Queued::outcome`] waits for its turn.
    ///
    /// ```
    /// # use harness::prelude::*;
    /// # use harness::store::MemoryStore;
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    /// # struct Chat { #[state(reduce = append)] lines: Vec<String> }
    /// # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Reply }
    /// # async fn reply(_: View<Chat>, _: Cx<()>) -> StepResult<Chat> { Ok(Chat::update().lines(["hi".into()])) }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let harness = Harness::<(), Chat>::builder("chat").start(Step::Reply).steps(|define, step| match step {
    /// #     Step::Reply => define.run(reply).end(),
    /// # }).build()?;
    /// use harness::worker::Worker;
    ///
    /// let agent = harness.agent("chat", ()).store(MemoryStore::new());
    /// let hello = Chat::update().lines(["hello".into()]);
    /// let queued = agent.enqueue("chat-1", hello).input_id("message-1").await?;
    ///
    /// // In this process or in another:
    /// let worker = Worker::new().serve(&agent, |_session| async { Ok(()) }).start()?;
    ///
    /// let ended = queued.outcome().await?.ended()?;
    /// assert_eq!(ended.state.lines, ["hello", "hi"]);
    /// worker.drain().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// Awaiting it returns a [`RunError`] if the session's id is invalid, the session belongs to
    /// another agent, [another input has the id](RunError::is_input_conflict), the input cannot be
    /// stored, the store fails, or the agent has none. Then nothing is queued.
    pub fn enqueue(&self, session: impl AsRef<str>, input: S::Update) -> Enqueue<C, S> {
        let (agent, session) = (self.clone(), session.as_ref().to_owned());
        Enqueue { agent, session, input, id: None }
    }

    pub(crate) fn work_storage(&self) -> Option<(Arc<dyn SessionStore>, Duration)> {
        self.storage().map(|storage| (storage.store, storage.ttl))
    }

    /// Runs a session that a worker has claimed. `None` if it is not admitted.
    pub(crate) fn work_on(
        &self,
        slots: C::Runtime,
        lease: LeaseGuard,
        claimed: Claimed,
        admission: Arc<dyn Admission>,
    ) -> BoxFuture<Result<Option<Worked<S>>, RunError>> {
        let session = claimed.lease.session.clone();
        let Some(storage) = self.storage() else {
            return Box::pin(async move { Err(Kind::NoStore(session).into()) });
        };
        let mut options = self.options();
        options.session = Ok(session);
        options.detached = true;
        let (mut launched, _) = options.launch(None);
        launched.worker = true;
        launched.stop.hand_over();
        let taker = self.taker(storage, slots, launched);
        Box::pin(run_due(taker, lease, claimed, Some(admission)))
    }

    /// Claims a session, and does what it is due for.
    pub(crate) fn work_alone(&self, session: String, slots: C::Runtime) -> RunRequest<S> {
        let (agent, mut options) = (self.clone(), self.options());
        options.session = SessionId::new(session);
        options.detached = true;
        RunRequest::new(options, move |launched| {
            let Some(storage) = agent.storage() else {
                return Box::pin(async move { Err(Kind::NoStore(launched.session).into()) });
            };
            Box::pin(async move {
                let id = launched.session.clone();
                let claim = LeaseGuard::claim(&storage.store, &launched.session, storage.ttl).await;
                let (lease, claimed) = claim.map_err(Kind::Store)?;
                let taker = agent.taker(storage, slots, launched);
                match run_due(taker, lease, claimed, None).await? {
                    Some(worked) => Ok(worked.outcome),
                    None => Err(Kind::NotWaiting(id).into()),
                }
            })
        })
    }

    /// Runs a session that a step of another one has started, where that does not run.
    pub(crate) fn child_alone(&self, child: ChildStart, slots: C::Runtime) -> RunRequest<S> {
        let (agent, mut options) = (self.clone(), self.options());
        options.session = Ok(child.session);
        options.detached = true;
        RunRequest::new(options, move |launched| {
            let Some(storage) = agent.storage() else {
                return Box::pin(async move { Err(Kind::NoStore(launched.session).into()) });
            };
            Box::pin(attach(agent.taker(storage, slots, launched), child.input, child.parent))
        })
    }

    fn inputs(&self, session: &SessionId) -> Result<Inputs<'_>, RunError> {
        let Some(storage) = self.storage() else {
            return Err(Kind::NoStore(session.clone()).into());
        };
        let wiring = &*self.inner.harness.graph().wiring;
        Ok(Inputs { agent: self.id(), storage, identity: self.identity(), wiring })
    }
}

/// An input that is about to be [queued](Agent::enqueue). Await it.
#[must_use = "an input is queued when this is awaited"]
pub struct Enqueue<C: Context, S: State> {
    agent: Agent<C, S>,
    session: String,
    input: S::Update,
    id: Option<String>,
}

impl<C: Context, S: State> Enqueue<C, S> {
    /// Sets an id for the input, so that it is applied once, however often it is queued. The default
    /// is a fresh id.
    pub fn input_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }
}

impl<C: Context, S: State> IntoFuture for Enqueue<C, S> {
    type Output = Result<Queued<S>, RunError>;
    type IntoFuture = BoxFuture<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { agent, session, input, id } = self;
        let update = encoded::<S>(&input);
        Box::pin(async move {
            let session = SessionId::new(session).map_err(Kind::from)?;
            let id = id.unwrap_or_else(|| RunId::fresh().to_string());
            let status = agent.inputs(&session)?.enqueue::<S>(&session, &id, &update?).await?;
            Ok(Queued::new(session, id, status, Arc::new(agent)))
        })
    }
}

impl<C: Context, S: State> std::fmt::Debug for Enqueue<C, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { agent, session, id, .. } = self;
        f.debug_struct("Enqueue")
            .field("agent", agent)
            .field("session", session)
            .field("id", id)
            .finish_non_exhaustive()
    }
}

impl<C: Context, S: State> Resumer<S> for Agent<C, S> {
    fn resume(&self, rest: Rest<S>, answers: Answers, slots: ErasedSlots) -> RunRequest<S> {
        let mut options = self.options();
        options.session = Ok(rest.id.clone());
        match slots.value.downcast::<C::Runtime>() {
            Ok(slots) => Agent::resume(self, Resume(Source::Rest(rest)), answers, *slots),
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

    fn outcome_of(
        &self,
        session: SessionId,
        input: String,
    ) -> BoxFuture<Result<Outcome<S>, RunError>> {
        let agent = self.clone();
        Box::pin(async move {
            let resumer = Arc::new(agent.clone());
            agent.inputs(&session)?.outcome::<S>(&session, &input, resumer).await
        })
    }
}
