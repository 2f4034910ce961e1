//! Whether the stored sessions of an agent fit its loop.

use std::sync::Arc;

use crate::compat::{Compatibility, Fit, FitSummary, check};
use crate::context::Context;
use crate::id::SessionId;
use crate::inspect::{Filter, Kind, Sessions, SessionsError, read_error};
use crate::journal::read;
use crate::state::State;
use crate::store::SessionStore;

use super::Agent;

/// The rows of a page of the list of sessions.
const ROWS: u32 = 256;

impl<C: Context, S: State> Agent<C, S> {
    /// Whether this agent can resume a session: what a resume would find, and nothing is written and
    /// no step runs. Only the state's own code does: how it is decoded, its migration.
    ///
    /// Run it with a new version of a program before that is deployed.
    ///
    /// ```
    /// # use harness::prelude::*;
    /// # use harness::store::MemoryStore;
    /// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Doc { text: String }
    /// # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Write }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let harness = Harness::<(), Doc>::builder("d").start(Step::Write).steps(|define, step| match step {
    /// #     Step::Write => define.run(|_, _| async move { Ok(Doc::update()) }).end(),
    /// # }).build()?;
    /// use harness::compat::Fit;
    ///
    /// let agent = harness.agent("writer", ()).store(MemoryStore::new());
    /// agent.run(Doc::update(), ()).session("draft").await?;
    /// assert!(matches!(agent.check("draft").await?, Fit::Same));
    ///
    /// let all = agent.check_all().await?;
    /// assert!(all.is_resumable(), "{all}");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The session [belongs to another agent](SessionsError::is_wrong_agent),
    /// [does not exist](SessionsError::is_not_found) or [is damaged](SessionsError::is_damaged); the
    /// store failed, or the agent has none.
    pub async fn check(&self, session: impl AsRef<str>) -> Result<Fit, SessionsError> {
        let session = SessionId::new(session)?;
        let store = self.session_store(&session)?;
        self.fit(&*store, &session).await
    }

    /// [Checks](Self::check) every session of this agent, page by page. Sessions that are created or
    /// deleted meanwhile may be missing.
    ///
    /// # Errors
    /// The store failed, or the agent has none. A session that cannot be read is counted.
    pub async fn check_all(&self) -> Result<FitSummary, SessionsError> {
        let store = self.session_store(&SessionId::fresh())?;
        let sessions = Sessions::shared(Arc::clone(&store));
        let filter = Filter::sessions().agent(self.id().clone());
        let (mut summary, mut after) = (FitSummary::default(), None::<Vec<u8>>);
        loop {
            let page = sessions.list(&filter, after.as_deref(), ROWS).await?;
            for row in page.rows {
                match self.fit(&*store, &row.session).await {
                    Ok(fit) => summary.count(&row.session, Ok(fit)),
                    Err(error) if error.is_not_found() => {}
                    Err(error) if error.is_of_one_session() => {
                        // Without the id, the same error of other sessions is the same text.
                        let id = format!("`{:#}`", row.session);
                        let error = error.to_string().replace(&id, "..");
                        summary.count(&row.session, Err(error));
                    }
                    Err(error) => return Err(error),
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(summary),
            }
        }
    }

    pub(super) fn compatibility_rule(&self) -> Compatibility {
        self.inner.stored.compatibility
    }

    async fn fit(
        &self,
        store: &dyn SessionStore,
        session: &SessionId,
    ) -> Result<Fit, SessionsError> {
        let found = read(store, session).await.map_err(|error| read_error(session, error))?;
        let found = found.ok_or_else(|| Kind::NotFound(session.clone()))?;
        self.check_agent(session, &found.recorded)?;
        let rule = self.compatibility_rule();
        Ok(match check::<S>(&found.recorded, &self.identity().target(rule)) {
            Ok(compatible) if compatible.adopted.is_none() => Fit::Same,
            Ok(_) => Fit::Adopts,
            Err(incompatible) => Fit::Incompatible(incompatible),
        })
    }
}
