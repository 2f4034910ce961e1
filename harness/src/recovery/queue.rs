//! Inputs that wait for a worker: leaving them with a session, and what became of them.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use crate::compat::{LoopIdentity, state_of};
use crate::graph::Wiring;
use crate::id::{AgentId, Seq, SessionId};
use crate::inbox::{
    SentFrom, applied_key, input_key, queue_input, read_inbox, summary, why_skipped,
};
use crate::journal::{Journal, LeaseGuard, Place, Start, read, walk};
use crate::run::{Kind, Outcome, QueueStatus, Resumer, RunError};
use crate::session::Recorded;
use crate::state::State;
use crate::store::{InboxSeq, Phase, ReadFrom, SessionStore, SessionSummary, StoreError};

use super::refuse::read_error;
use super::turn::opened;
use super::{Storage, outcome_at_rest};

/// How long to wait before looking again at a session that another process is about to begin.
const BEGINNING: Duration = Duration::from_millis(5);

/// The waits between two looks at a session whose turn is not over.
const FIRST_WAIT: Duration = Duration::from_millis(5);
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// An agent, as far as the inputs of its sessions are concerned.
pub(crate) struct Inputs<'a> {
    pub(crate) agent: &'a AgentId,
    pub(crate) storage: Storage,
    pub(crate) identity: &'a LoopIdentity,
    pub(crate) wiring: &'a Wiring,
}

impl Inputs<'_> {
    fn store(&self) -> &dyn SessionStore {
        &*self.storage.store
    }

    /// Leaves an input in the inbox of a session, which is created if it does not exist.
    pub(crate) async fn enqueue<S: State>(
        &self,
        session: &SessionId,
        id: &str,
        update: &Value,
    ) -> Result<QueueStatus, RunError> {
        loop {
            let page = summary(self.store(), session).await.map_err(Kind::Store)?;
            let Some(page) = page else {
                self.open::<S>(session).await?;
                continue;
            };
            self.owns(session, &page.summary.agent)?;
            match queue_input(self.store(), session, id, update, SentFrom::here()).await {
                Ok(false) if page.holder.is_some() => return Ok(QueueStatus::Held),
                Ok(false) if page.summary.phase == Phase::Ended => return Ok(QueueStatus::Due),
                Ok(false) => return Ok(QueueStatus::Unsettled),
                Ok(true) => {
                    let (session, id) = (session.clone(), id.to_owned());
                    return Err(Kind::InputConflict { session, id }.into());
                }
                // It was removed in between.
                Err(StoreError::Gone { .. }) => {}
                Err(error) => return Err(Kind::Store(error).into()),
            }
        }
    }

    fn owns(&self, session: &SessionId, found: &AgentId) -> Result<(), Kind> {
        if found == self.agent {
            return Ok(());
        }
        let (session, expected) = (session.clone(), self.agent.clone());
        Err(Kind::WrongAgent { session, expected, found: found.clone() })
    }

    /// Creates a session whose first turn has not begun, unless another process is at it.
    async fn open<S: State>(&self, session: &SessionId) -> Result<(), RunError> {
        let (opened, _) = opened::<S>(self.agent, self.identity)?;
        let claim = LeaseGuard::claim(&self.storage.store, session, self.storage.ttl).await;
        let (guard, claimed) = match claim {
            Ok(claimed) => claimed,
            Err(StoreError::Busy { .. }) => {
                sleep(BEGINNING).await;
                return Ok(());
            }
            Err(error) => return Err(Kind::Store(error).into()),
        };
        if claimed.head > Seq(0) {
            let _ = guard.release(InboxSeq(0)).await;
            return Ok(());
        }
        let (state, inbox) = (opened.state.clone(), InboxSeq(0));
        let start = Start { state, inbox, head: Seq(0), since: 0 };
        let step = self.wiring.name_of(self.wiring.start);
        let at_rest = SessionSummary::new(self.agent.clone(), Phase::Ended, &*step);
        let journal = Journal::new(guard, start, self.storage.durability);
        let written = match journal.open_at_rest(opened, at_rest) {
            Ok(()) => journal.flush().await,
            Err(broken) => Err(broken),
        };
        let _ = journal.release().await;
        Ok(written.map_err(Kind::unrecorded)?)
    }

    /// Waits until the turn of an input is over, or waits for an answer.
    pub(crate) async fn outcome<S: State>(
        &self,
        session: &SessionId,
        id: &str,
        resumer: Arc<dyn Resumer<S>>,
    ) -> Result<Outcome<S>, RunError> {
        let key = input_key(id);
        let (mut wait, mut seen) = (FIRST_WAIT, None);
        loop {
            let page = summary(self.store(), session).await.map_err(Kind::Store)?;
            let Some(page) = page else { return Err(Kind::NotFound(session.clone()).into()) };
            self.owns(session, &page.summary.agent)?;
            // Every change of what is looked for adds an entry or a message.
            let now = (page.head, page.inbox);
            if seen.replace(now) != Some(now)
                && let Some(recorded) = self.settled(session, id, &key).await?
            {
                let state = state_of::<S>(&recorded).map_err(Kind::from)?;
                return Ok(outcome_at_rest(session, &recorded.session, state, resumer));
            }
            sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// The session as the turn of an input has left it; `None` while the turn has not begun, is at
    /// work, or waits for a timer.
    async fn settled(
        &self,
        session: &SessionId,
        id: &str,
        key: &str,
    ) -> Result<Option<Recorded>, Kind> {
        let now = read(self.store(), session).await.map_err(|error| read_error(session, error))?;
        let Some(now) = now else { return Err(Kind::NotFound(session.clone())) };
        let current = now.recorded.session;
        if current.input.as_deref() == Some(key) {
            let rests = !matches!(current.phase, Phase::Running | Phase::Waiting);
            let state = now.recorded.state;
            return Ok(rests.then_some(Recorded { session: current, state }));
        }
        let noted = applied_key(key);
        let inbox = read_inbox(self.store(), session).await.map_err(Kind::Store)?;
        if !inbox.iter().any(|message| message.key == noted) {
            return match why_skipped(&inbox, key) {
                Some(why) => {
                    let (session, id, why) = (session.clone(), id.to_owned(), why.to_owned());
                    Err(Kind::InputSkipped { session, id, why })
                }
                None => Ok(None),
            };
        }
        // A later turn has begun: the log says how this one ended.
        let mut last = None;
        let look = |place: Place<'_>| {
            let is_its = place.recorded.session.input.as_deref() == Some(key);
            if is_its && place.boundary {
                last = Some(place.recorded.clone());
            }
            match is_its || last.is_none() {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        let walked = walk(self.store(), session, ReadFrom::Seq(Seq(1)), look).await;
        walked.map_err(|error| read_error(session, error))?;
        Ok(last)
    }
}
