//! What sessions have been, with their type: going through their past, and going another way from
//! there.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::context::Context;
use crate::id::{Seq, SessionId};
use crate::journal::{Place, walk};
use crate::log::{Saved, state_of};
use crate::sessions::{Kind, Moment, MomentPage, SessionsError, fork, open_error, saved_at};
use crate::state::State;
use crate::store::{ReadFrom, SessionStore};

use super::Agent;

impl<C: Context, S: State> Agent<C, S> {
    /// The state of a session as it was right behind an entry of its log. Events of a session in a
    /// store carry the [number](crate::observe::Event::seq) of that entry.
    ///
    /// The log is folded as it was written: neither steps nor reducers run. A state of the version
    /// before is migrated.
    ///
    /// # Errors
    /// There is [no such entry](SessionsError::is_no_such_entry), or it
    /// [was pruned](SessionsError::is_pruned); the state [does not
    /// fit](SessionsError::incompatible) this program; the session is [another
    /// agent's](SessionsError::is_wrong_agent), [does not exist](SessionsError::is_not_found) or
    /// [is damaged](SessionsError::is_damaged); the store failed, or there is none.
    pub async fn state_at(&self, session: impl AsRef<str>, seq: Seq) -> Result<S, SessionsError> {
        let session = SessionId::new(session)?;
        let store = self.keeper(&session)?;
        let saved = saved_at(&*store, &session, seq).await?;
        self.read_state(&session, &saved)
    }

    /// The moments of a session, the oldest first: what it was whenever a step's result had been
    /// taken in. At most `limit` of them (at least 1 is meant), from the entry `from` on.
    /// [`Seq`]`(0)` begins at the first. A session can be [forked](Agent::fork) at each.
    ///
    /// The log without the types, entry by entry, is
    /// [`Sessions::history`](crate::Sessions::history).
    ///
    /// # Errors
    /// As of [`state_at`](Agent::state_at).
    pub async fn history(
        &self,
        session: impl AsRef<str>,
        from: Seq,
        limit: usize,
    ) -> Result<MomentPage<S>, SessionsError> {
        let session = SessionId::new(session)?;
        let store = self.keeper(&session)?;
        let mut page = MomentPage { moments: Vec::new(), next: None };
        let mut failed = None;
        let look = |place: Place<'_>| {
            if !place.boundary || place.seq < from {
                return ControlFlow::Continue(());
            }
            if page.moments.len() >= limit.max(1) {
                page.next = Some(place.seq);
                return ControlFlow::Break(());
            }
            match self.read_state(&session, place.saved) {
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
        let walked = walk(&*store, &session, ReadFrom::SnapshotBelow(from), look).await;
        match (walked, failed) {
            (_, Some(error)) => Err(error),
            (Ok(Some(_)), None) => Ok(page),
            (Ok(None), None) => Err(Kind::NotFound(session).into()),
            (Err(error), None) => Err(open_error(&session, error)),
        }
    }

    /// Begins the session `to` with what `session` was right behind the entry `seq`, with which a
    /// step's result must end: one of its [moments](Agent::history). From there the two go their
    /// own ways: what happens to one, its deletion included, does not concern the other.
    ///
    /// The state, the results of effects, answers given up to there and what was spent come along.
    /// Questions that wait there wait in the fork too, under ids of their own: whoever answers the
    /// one has not answered the other. Letters do not come along.
    ///
    /// Nothing runs. A place in the middle of a turn is one to be [resumed](Agent::resume), as if
    /// the fork had been stopped there; at the end of a turn the fork takes its next input.
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
    /// No step's result ends with that entry
    /// ([which one does](SessionsError::nearest_boundary)); `to`
    /// [exists already](SessionsError::is_exists); there is
    /// [no such entry](SessionsError::is_no_such_entry), or it
    /// [was pruned](SessionsError::is_pruned); the session is [another
    /// agent's](SessionsError::is_wrong_agent), [does not exist](SessionsError::is_not_found) or
    /// [is damaged](SessionsError::is_damaged); the store failed, or there is none. Whether the
    /// state fits this program is seen when the fork is resumed.
    pub async fn fork(
        &self,
        session: impl AsRef<str>,
        seq: Seq,
        to: impl AsRef<str>,
    ) -> Result<(), SessionsError> {
        let (session, to) = (SessionId::new(session)?, SessionId::new(to)?);
        let store = self.keeper(&session)?;
        let may = |saved: &Saved| self.keeps(&session, saved);
        fork(&*store, &session, seq, &to, may).await
    }

    fn keeper(&self, session: &SessionId) -> Result<Arc<dyn SessionStore>, SessionsError> {
        match &self.inner.stored {
            Some(stored) => Ok(Arc::clone(&stored.store)),
            None => Err(Kind::NoStore(session.clone()).into()),
        }
    }

    fn keeps(&self, session: &SessionId, saved: &Saved) -> Result<(), SessionsError> {
        if saved.agent == *self.id() {
            return Ok(());
        }
        let (session, expected) = (session.clone(), self.id().clone());
        Err(Kind::WrongAgent { session, expected, found: saved.agent.clone() }.into())
    }

    fn read_state(&self, session: &SessionId, saved: &Saved) -> Result<S, SessionsError> {
        self.keeps(session, saved)?;
        let incompatible = |source| Kind::Incompatible { session: session.clone(), source };
        Ok(state_of::<S>(saved).map_err(incompatible)?)
    }
}
