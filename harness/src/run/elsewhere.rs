//! Children that do not run where their parent runs.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{AgentId, SessionId};
use crate::session::ParentSession;
use crate::store::StoreError;

/// A session that a step of another one starts: see [`Cx::call`](crate::Cx::call).
///
/// Serialized, it is one JSON object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChildStart {
    /// The session.
    pub session: SessionId,
    /// Its agent.
    pub agent: AgentId,
    /// Its input, an update of its state.
    pub input: Value,
    /// The step that starts it.
    pub parent: ParentSession,
}

impl ChildStart {
    pub(super) fn new(
        session: SessionId,
        agent: AgentId,
        input: Value,
        parent: ParentSession,
    ) -> Self {
        Self { session, agent, input, parent }
    }
}

/// Where the children of a run are, if that is not where the run is.
#[async_trait]
pub(crate) trait Elsewhere: Send + Sync {
    /// Starts a child. One that was started before is left as it is; if its turn is over, its parent is
    /// notified again.
    async fn start(&self, child: ChildStart) -> Result<(), StoreError>;

    /// Why a child of this agent cannot be started there, if it cannot. `slots` says whether the agent
    /// has runtime slots: those of the call do not reach the child.
    fn refuses(&self, agent: &AgentId, slots: bool) -> Option<String>;
}
