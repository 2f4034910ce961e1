//! The past of sessions, with the type of their state: reading it, and forking from it.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::compat::state_of;
use crate::context::Context;
use crate::id::{Seq, SessionId};
use crate::inspect::{Kind, Moment, MomentPage, SessionsError, fork, read_error, recorded_at};
use crate::journal::{Place, walk};
use crate::session::Recorded;
use crate::state::State;
use crate::store::{ReadFrom, SessionStore};

use super::Agent;

impl<C: Context, S: State> Agent<C, S> {
    /// The state of a session after an entry of its log. An event of a stored session carries the
    /// [number](crate::observe::Event::seq) of its entry.
    ///
    /// The log is folded as it was written: no step and no reducer runs. A state of an earlier
    /// version is migrated.
    ///
    /// # Errors
    /// [No such entry](SessionsError::is_no_such_entry), or it
    /// [was pruned](SessionsError::is_pruned); the state is
    /// [incompatible](SessionsError::incompatible) with this program; the session [belongs to
    /// another agent](SessionsError::is_wrong_agent), [does not exist](SessionsError::is_not_found)
    /// or [is damaged](SessionsError::is_damaged); the store failed, or the agent has none.
    pub async fn state_at(&self, session: impl AsRef<str>, seq: Seq) -> Result<S, SessionsError> {
        let session = SessionId::new(session)?;
        let store = self.session_store(&session)?;
        let recorded = recorded_at(&*store, &session, seq).await?;
        self.read_state(&session, &recorded)
    }

    /// The session after each commit, oldest first: at most `limit` moments (at least 1), from the
    /// entry `from` on. [`Seq`]`(0)` starts at the first. A session can be [forked](Agent::fork) at
    /// each moment.
    ///
    /// [`Sessions::history`](crate::Sessions::history) returns the entries of the log, without the
    /// types.
    ///
    /// # Errors
    /// Those of [`state_at`](Agent::state_at).
    pub async fn history(
        &self,
        session: impl AsRef<str>,
        from: Seq,
        limit: usize,
    ) -> Result<MomentPage<S>, SessionsError> {
        let session = SessionId::new(session)?;
        let store = self.session_store(&session)?;
        let mut page = MomentPage { moments: Vec::new(), next: None };
        let mut failed = None;
        let visit = |place: Place<'_>| {
            if !place.boundary || place.seq < from {
                return ControlFlow::Continue(());
            }
            if page.moments.len() >= limit.max(1) {
                page.next = Some(place.seq);
                return ControlFlow::Break(());
            }
            match self.read_state(&session, place.recorded) {
                Ok(state) => {
                    page.moments.push(Moment::of(&place, state));
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        };
        let walked = walk(&*store, &session, ReadFrom::SnapshotBelow(from), visit).await;
        match (walked, failed) {
            (_, Some(error)) => Err(error),
            (Ok(Some(_)), None) => Ok(page),
            (Ok(None), None) => Err(Kind::NotFound(session).into()),
            (Err(error), None) => Err(read_error(&session, error)),
        }
    }

    /// Creates the session `to` from `session` as it was after the entry `seq`, which must be one of
    /// its [moments](Agent::history). The two sessions are independent from then on: a change of
    /// one, or its deletion, does not affect the other.
    ///
    /// The fork has the state, the results of effects, the answers and the spend up to that entry.
    /// Interrupts that are open there are open in the fork too, under other ids: an answer to one
    /// does not answer the other. Inbox messages are not copied.
    ///
    /// Nothing runs. A fork in the middle of a turn is [resumed](Agent::resume) like a stopped
    /// session; a fork at the end of a turn takes its next input.
    ///
    /// ```
    /// # use harness::prelude::*;
    /// # use harness::store::MemoryStore;
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
    /// # struct Doc { #[state(reduce = append)] lines: Vec<String> }
    /// # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Write }
    /// # async fn write(_: View<Doc>, _: Cx<()>) -> StepResult<Doc> { Ok(Doc::update().lines(["written".into()])) }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let harness = Harness::<(), Doc>::builder("d").start(Step::Write).steps(|define, step| match step {
    /// #     Step::Write => define.run(write).end(),
    /// # }).build()?;
    /// use harness::Seq;
    ///
    /// let agent = harness.agent("writer", ()).store(MemoryStore::new());
    /// agent.run(Doc::update().lines(["title".into()]), ()).session("draft").await?.ended()?;
    ///
    /// let past = agent.history("draft", Seq(0), 10).await?;
    /// assert_eq!(past.moments[0].state.lines, ["title"]);
    ///
    /// agent.fork("draft", past.moments[0].seq, "again").await?;
    /// let ended = agent.resume("again", Answers::none(), ()).await?.ended()?;
    /// assert_eq!(ended.state.lines, ["title", "written"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// No commit ends with that entry ([the last one before it that
    /// does](SessionsError::nearest_boundary)); `to` [exists already](SessionsError::is_exists);
    /// [no such entry](SessionsError::is_no_such_entry), or it
    /// [was pruned](SessionsError::is_pruned); the session [belongs to another
    /// agent](SessionsError::is_wrong_agent), [does not exist](SessionsError::is_not_found) or
    /// [is damaged](SessionsError::is_damaged); the store failed, or the agent has none. Resuming
    /// the fork checks whether its state is compatible with this program.
    pub async fn fork(
        &self,
        session: impl AsRef<str>,
        seq: Seq,
        to: impl AsRef<str>,
    ) -> Result<(), SessionsError> {
        let (session, to) = (SessionId::new(session)?, SessionId::new(to)?);
        let store = self.session_store(&session)?;
        let may = |recorded: &Recorded| self.check_agent(&session, recorded);
        fork(&*store, &session, seq, &to, may).await
    }

    pub(super) fn session_store(
        &self,
        session: &SessionId,
    ) -> Result<Arc<dyn SessionStore>, SessionsError> {
        match self.storage() {
            Some(storage) => Ok(storage.store),
            None => Err(Kind::NoStore(session.clone()).into()),
        }
    }

    pub(super) fn check_agent(
        &self,
        session: &SessionId,
        recorded: &Recorded,
    ) -> Result<(), SessionsError> {
        if recorded.session.agent == *self.id() {
            return Ok(());
        }
        let (session, expected) = (session.clone(), self.id().clone());
        Err(Kind::WrongAgent { session, expected, found: recorded.session.agent.clone() }.into())
    }

    fn read_state(&self, session: &SessionId, recorded: &Recorded) -> Result<S, SessionsError> {
        self.check_agent(session, recorded)?;
        let incompatible = |cause| Kind::Incompatible { session: session.clone(), cause };
        Ok(state_of::<S>(recorded).map_err(incompatible)?)
    }
}
