//! What is wrong with finding due sessions.

use std::time::Duration;

use harness::store::{
    Claimed, DueRequest, DueSessions, Filter, InboxSeq, Phase, Row, SessionStore, StoreError,
};

use super::Bug::*;
use super::store::Wrong;

impl Wrong {
    pub(super) async fn due(
        &self,
        request: &DueRequest,
        ttl: Duration,
    ) -> Result<DueSessions, StoreError> {
        let mut request = request.clone();
        if self.bug == IgnoresTheRequest {
            (request.limit, request.except) = (u32::MAX, Vec::new());
        }
        let mut due = self.right.claim_due(&request, ttl).await?;
        let wrong = |claimed: &Claimed| {
            let summary = claimed.summary.as_ref().unwrap();
            match self.bug {
                FindsNoCrash => summary.phase == Phase::Running,
                IgnoresDueTimes => summary.due.is_some(),
                FindsOnlyCrashes => summary.phase != Phase::Running,
                _ => false,
            }
        };
        let (left, claimed) = due.claimed.into_iter().partition(wrong);
        due.claimed = claimed;
        for claimed in left {
            self.right.release(&claimed.lease, InboxSeq(0)).await?;
        }
        match self.bug {
            FindsDueWithoutALease => {
                for claimed in &due.claimed {
                    self.right.release(&claimed.lease, InboxSeq(0)).await?;
                }
            }
            WaitsForTheHolder => {
                // It knows only those that were released.
                let expired =
                    |claimed: &Claimed| claimed.former == harness::store::FormerHolder::Expired;
                due.claimed.retain(|claimed| !expired(claimed));
            }
            ClaimsHeldOnesAsDue
            | SharesDueSessions
            | FindsAll
            | ForgetsWhatWasRead
            | RemembersRemovedOnesAsDue => self.add(&request, ttl, &mut due).await?,
            _ => {}
        }
        due.claimed.iter().for_each(|claimed| self.note(claimed, ttl));
        Ok(due)
    }

    /// Claims sessions that are not due.
    async fn add(
        &self,
        request: &DueRequest,
        ttl: Duration,
        due: &mut DueSessions,
    ) -> Result<(), StoreError> {
        for agent in &request.agents {
            let listed = Filter::sessions().agent(agent.clone());
            for row in self.right.list(&listed, None, u32::MAX).await?.rows {
                if !self.takes(&row).await {
                    continue;
                }
                if matches!(self.bug, ClaimsHeldOnesAsDue | SharesDueSessions) {
                    if due.claimed.iter().any(|claimed| claimed.lease.session == row.session) {
                        continue;
                    }
                    self.free(&row.session).await;
                }
                if let Ok(claimed) = self.right.claim(&row.session, ttl).await {
                    due.claimed.push(claimed);
                }
            }
        }
        Ok(())
    }

    async fn takes(&self, row: &Row) -> bool {
        let page = self.right.read(&row.session, harness::store::ReadRequest::summary()).await;
        let page = page.unwrap().unwrap();
        match self.bug {
            FindsAll => true,
            // As if it looked before another call had claimed it, once for each session.
            SharesDueSessions => row.head.0 == 1 && page.holder.is_some(),
            RemembersRemovedOnesAsDue => self.was_removed(&row.session),
            ForgetsWhatWasRead => page.inbox > row.summary.inbox,
            _ => page.holder.is_some() && row.summary.phase == Phase::Running,
        }
    }
}
