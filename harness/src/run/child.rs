//! The child of a step, as the run of the step sees it: started once, watched, recorded.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::clock::UtcMillis;
use crate::id::{AgentId, SessionId};
use crate::journal::{Durability, Journal, When};
use crate::llm::Spend;
use crate::observe::trace::of_span;
use crate::session::{Change, ChildAt, ChildDone, Digest, KnownChild, ParentSession};
use crate::step::{EffectScope, Effects as _, Place, Scope, StepError};
use crate::store::{InboxSeq, ReadRequest, SessionStore};

use super::call_error::{CallError, Kind, MAX_DEPTH};
use super::core::RunCore;
use super::elsewhere::ChildStart;
use super::error::Kind as RunKind;
use super::outcome::request::Launched;
use super::stop::StopSignal;

/// What is known when a step calls an agent.
pub(super) enum Begun {
    /// The turn of its child is over.
    Done(SessionId, Box<ChildDone>),
    /// It is not.
    Open(Box<Ticket>),
}

/// The right of one task to run a child. The attempt that called it waits until it is dropped.
pub(super) struct Ticket {
    core: Arc<RunCore>,
    scope: Scope,
    /// What is recorded of the child.
    at: ChildAt,
    /// Whether that is in the log.
    saved: bool,
    depth: u32,
    /// Stops the child's run.
    pub(super) stop: StopSignal,
}

/// What an agent needs to run a child.
pub(crate) struct Attach {
    pub(crate) input: Value,
    pub(crate) parent: ParentSession,
    /// Where the parent is stored, and how.
    pub(crate) store: Option<(Arc<dyn SessionStore>, Duration, Durability)>,
    core: Arc<RunCore>,
    scope: Scope,
    session: SessionId,
    stop: StopSignal,
}

impl Attach {
    pub(crate) fn session(&self) -> &SessionId {
        &self.session
    }

    /// Makes a run of the child the parent's: its events, its spend, its end.
    pub(crate) fn prepare(&self, launched: &mut Launched) {
        launched.parent = Some(self.core.as_parent(&self.scope).of_child(self.session.clone()));
        launched.stop = self.stop.clone();
        launched.fanout.join(&self.core.fanout);
        launched.trace = self.core.session(|session| session.trace.clone());
        if self.core.stop.is_handed_over() {
            self.stop.hand_over();
        }
    }
}

/// The id of a child's session: the same in each process that runs the step again.
fn child_session(scope: &Scope, key: &str, before: u32) -> SessionId {
    let name = serde_json::json!([scope.op_id(), key, before]);
    let digest = Digest::of(&name);
    SessionId::new(format!("child-{}", &digest.as_str()[..32]))
        .unwrap_or_else(|_| SessionId::fresh())
}

/// Begins the call of an agent in a step.
pub(super) fn begin(
    scope: &Scope,
    key: &str,
    agent: &AgentId,
    input: &Value,
) -> Result<Begun, CallError> {
    let fail = |kind| CallError::new(agent, kind);
    let core = Arc::clone(&scope.effects).into_any().downcast::<RunCore>();
    let Ok(core) = core else { return Err(fail(Kind::Unsupported)) };
    let depth = core.as_parent(scope).depth();
    if depth > MAX_DEPTH {
        return Err(fail(Kind::TooDeep));
    }
    let (place, input) = (scope.place, Digest::of(input));
    let stop = StopSignal::default();
    let fresh = |before| child_session(scope, key, before);
    let known = core.session(|session| session.child(place.item, key).cloned());
    let (session, saved) = match &known {
        Some(known) if !known.given_up => {
            let found = known.at.agent.clone();
            if found != *agent {
                return Err(fail(Kind::AnotherAgent { key: key.to_owned(), found }));
            }
            if known.at.input != input {
                let (key, session) = (key.to_owned(), known.at.session.clone());
                return Err(fail(Kind::InputChanged { key, session }));
            }
            (known.at.session.clone(), true)
        }
        Some(known) => (fresh(known.before.saturating_add(1)), false),
        None => (fresh(0), false),
    };
    {
        let slots = &mut core.live().slots;
        let Some(work) = slots.of(place) else { return Err(fail(Kind::Stale)) };
        if !work.use_effect_key(format!("child/{key}")) {
            return Err(fail(Kind::KeyReused { key: key.to_owned() }));
        }
        if let Some(KnownChild { done: Some(done), given_up: false, .. }) = known {
            return Ok(Begun::Done(session, done));
        }
        work.adopt_child(stop.clone());
        slots.begin_effect(place, EffectScope::Position, key);
    }
    let at = match known {
        Some(known) if saved => known.at,
        _ => ChildAt {
            key: key.to_owned(),
            item: place.item,
            agent: agent.clone(),
            session,
            input,
            spent: Spend::default(),
            due: None,
            since: Some(UtcMillis::now()),
        },
    };
    Ok(Begun::Open(Box::new(Ticket { core, scope: scope.clone(), at, saved, depth, stop })))
}

impl Ticket {
    pub(super) fn session(&self) -> &SessionId {
        &self.at.session
    }

    fn place(&self) -> Place {
        self.scope.place
    }

    /// Saves the child's id, before it can start.
    pub(super) async fn save(&mut self) -> Result<(), CallError> {
        if !self.saved {
            let change = Change::Child(Box::new(self.at.clone()));
            self.core.record_now(change).await.map_err(|error| self.unrecorded(&error))?;
            self.saved = true;
        }
        // That takes time, in which the process may have stood still.
        match self.core.holds().await {
            true => Ok(()),
            false => Err(self.unrecorded(&crate::journal::Broken::LeaseLost.to_error())),
        }
    }

    pub(super) fn fail(&self, kind: Kind) -> CallError {
        CallError::new(&self.at.agent, kind)
    }

    fn unrecorded(&self, error: &StepError) -> CallError {
        self.fail(Kind::NotRecorded(error.to_string()))
    }

    fn parent(&self) -> ParentSession {
        let ids = self.core.ids();
        ParentSession {
            agent: ids.agent.clone(),
            session: ids.session.clone(),
            run: ids.run.clone(),
            position: self.place().position,
            item: self.place().item,
            depth: self.depth,
            trace: self.core.spans.as_ref().and_then(|spans| of_span(&spans.step(self.place()))),
        }
    }

    /// Refuses a child that cannot be started where it would run, before anything is saved of it.
    pub(super) fn admit(&self, slots: bool) -> Result<(), CallError> {
        let elsewhere = self.core.elsewhere.as_ref().filter(|_| !self.saved);
        match elsewhere.and_then(|it| it.refuses(&self.at.agent, slots)) {
            Some(why) => Err(self.fail(Kind::Refused(why))),
            None => Ok(()),
        }
    }

    /// Starts the child where it runs, if that is not here and its turn is not over. Says whether.
    pub(super) async fn start_elsewhere(&self, input: &Value) -> Result<bool, CallError> {
        let (Some(elsewhere), Some(journal)) = (&self.core.elsewhere, &self.core.journal) else {
            return Ok(false);
        };
        let (session, agent) = (self.session().clone(), self.at.agent.clone());
        let not_run = |error| {
            let (session, error) = (self.session().clone(), RunKind::Store(error).into());
            self.fail(Kind::NotRun { session, error })
        };
        // Only a child whose turn is over is here, too.
        let (store, _) = journal.place();
        let request = ReadRequest::messages_after(InboxSeq(0));
        if store.read(&session, request).await.map_err(not_run)?.is_some() {
            return Ok(false);
        }
        let child = ChildStart::new(session, agent, input.clone(), self.parent());
        elsewhere.start(child).await.map_err(not_run)?;
        Ok(true)
    }

    /// What the agent needs to run the child.
    pub(super) fn attach(&self, input: Value) -> Attach {
        Attach {
            input,
            parent: self.parent(),
            store: self.core.journal.as_ref().map(Journal::storage),
            core: Arc::clone(&self.core),
            scope: self.scope.clone(),
            session: self.at.session.clone(),
            stop: self.stop.clone(),
        }
    }

    /// Whether the parent has a store.
    pub(super) fn is_stored(&self) -> bool {
        self.core.journal.is_some()
    }

    /// Whether the child is not to start.
    pub(super) fn is_stopped(&self) -> bool {
        self.core.stop.is_stopped() || self.stop.is_stopped()
    }

    /// Runs the child: a stop of the parent stops it. `None` if it was stopped before it began.
    pub(super) async fn watch<T>(&self, run: impl Future<Output = T>) -> Option<T> {
        let mut run = std::pin::pin!(run);
        let parent = self.core.stop.stopping().clone();
        tokio::select! {
            biased;
            ended = &mut run => return Some(ended),
            () = parent.cancelled() => match self.core.stop.is_cancelled() {
                true => self.stop.cancel(),
                false => self.stop.stop(),
            },
            () = self.stop.stopping().cancelled() => {}
        }
        // It may wait for another process that runs the child.
        match self.stop.has_begun() {
            true => Some(run.await),
            false => None,
        }
    }

    /// The spend of the child in all, after a run that has spent this in its turn.
    fn spent(&self, by_turn: Spend) -> Spend {
        // Without a store each run of it is a session of its own.
        let mut spent = by_turn;
        if !self.is_stored() {
            spent += self.at.spent;
        }
        spent
    }

    /// Records a change of the child, and what it has spent since the last one.
    async fn record(&self, change: Change<usize>, spent: Spend) -> Result<(), CallError> {
        let recorded = {
            let mut live = self.core.live();
            live.children.remove(&self.at.session);
            let new = spent.since(self.at.spent);
            if new != Spend::default() {
                **live.unrecorded.get_or_insert_default() += new;
            }
            self.core.record_in(&mut live, change)
        };
        let written = match recorded {
            Ok(()) => self.core.commit(When::Now).await,
            Err(broken) => Err(broken),
        };
        written.map_err(|broken| self.unrecorded(&broken.to_error()))
    }

    /// The run of the child has settled, and its turn is not over: the attempt waits for it.
    pub(super) async fn park(&self, spent: Spend, due: Option<UtcMillis>) -> Result<(), CallError> {
        let spent = self.spent(spent);
        if spent != self.at.spent || due != self.at.due {
            let at = ChildAt { spent, due, ..self.at.clone() };
            self.record(Change::Child(Box::new(at)), spent).await?;
        }
        self.wait();
        Ok(())
    }

    /// The attempt waits for the child.
    pub(super) fn wait(&self) {
        if let Some(work) = self.core.live().slots.of(self.place()) {
            work.children.push(self.at.key.clone());
        }
    }

    /// The turn of the child is over.
    pub(super) async fn done(
        &self,
        make: impl FnOnce(String, Option<u32>, Spend) -> ChildDone,
        spent: Spend,
    ) -> Result<ChildDone, CallError> {
        let spent = self.spent(spent);
        let done = make(self.at.key.clone(), self.at.item, spent);
        self.record(Change::ChildDone(Box::new(done.clone())), spent).await?;
        Ok(done)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.core.effect_is_over(self.place(), EffectScope::Position, &self.at.key);
    }
}
