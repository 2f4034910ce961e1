//! The children that a session waits for.

use crate::clock::UtcMillis;
use crate::id::{AgentId, SessionId};
use crate::session::{ChildAt, Session, StepRef};

/// A session that another one has started, and waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Child {
    /// The item that waits for it, in a step that has items.
    pub item: Option<u32>,
    /// Its key.
    pub key: String,
    /// Its agent.
    pub agent: AgentId,
    /// The session.
    pub session: SessionId,
    /// When it was started; `None` if an earlier version of this library started it.
    pub since: Option<UtcMillis>,
}

impl Child {
    /// Those that a session waits for.
    pub(crate) fn awaited<P: StepRef>(session: &Session<P>) -> Vec<Self> {
        let children = session.awaited_children().map(|child| child.at.clone());
        let child = |at| {
            let ChildAt { key, item, agent, session, since, .. } = at;
            Self { item, key, agent, session, since }
        };
        children.map(child).collect()
    }
}
