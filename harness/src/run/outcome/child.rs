//! The children that a session waits for.

use crate::id::{AgentId, SessionId};
use crate::session::{Session, StepRef};

/// A session that another one has started, and waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Child {
    /// Its agent.
    pub agent: AgentId,
    /// The session.
    pub session: SessionId,
}

impl Child {
    /// Those that a session waits for.
    pub(crate) fn awaited<P: StepRef>(session: &Session<P>) -> Vec<Self> {
        let children = session.awaited_children().map(|child| &child.at);
        children.map(|at| Self { agent: at.agent.clone(), session: at.session.clone() }).collect()
    }
}
