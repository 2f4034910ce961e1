//! Which due sessions a worker wants, and those it got.

use crate::id::{AgentId, SessionId};

use super::error::StoreError;
use super::lease::Claimed;

/// Which due sessions to [claim](super::SessionStore::claim_due).
///
/// ```
/// use harness::id::AgentId;
/// use harness::store::DueRequest;
///
/// let request = DueRequest::new([AgentId::new("support")]).limit(8);
/// assert_eq!((request.agents.len(), request.limit), (1, 8));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DueRequest {
    /// Only sessions of these agents.
    pub agents: Vec<AgentId>,
    /// None of these sessions: the caller has tried them before, and tries them again later.
    pub except: Vec<SessionId>,
    /// The most sessions to claim.
    pub limit: u32,
}

impl DueRequest {
    /// One session of these agents.
    pub fn new(agents: impl IntoIterator<Item = AgentId>) -> Self {
        Self { agents: agents.into_iter().collect(), except: Vec::new(), limit: 1 }
    }

    /// None of these sessions.
    #[must_use]
    pub fn except(mut self, sessions: impl IntoIterator<Item = SessionId>) -> Self {
        self.except = sessions.into_iter().collect();
        self
    }

    /// The most sessions to claim.
    #[must_use]
    pub fn limit(mut self, sessions: u32) -> Self {
        self.limit = sessions;
        self
    }
}

/// The answer to a [claim of due sessions](super::SessionStore::claim_due).
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct DueSessions {
    /// The claimed sessions: at most as many as were asked for.
    pub claimed: Vec<Claimed>,
    /// Sessions that are due and that a [claim](super::SessionStore::claim) refuses for this reason,
    /// such as damage. Nothing was written to them.
    pub failed: Vec<(SessionId, StoreError)>,
}
