//! What a session on an engine has for another one: the start of a child, and the news that its turn is
//! over.

use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::run::ChildStart;
use crate::session::ParentSession;

use super::checkpoint::Checkpoint;

/// What an invocation has for another session. Each says which agent and session it is for.
#[derive(Debug)]
#[non_exhaustive]
pub enum Delivery {
    /// For the child: an invocation of it has to [run it](super::Invocation::child).
    Start(ChildStart),
    /// For the parent, that the turn of a child is over.
    Over(ChildOver),
}

/// A child whose turn is over.
///
/// Serialized, it is one JSON object.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChildOver {
    /// The step that started it.
    pub parent: ParentSession,
    /// The session of the child.
    pub session: SessionId,
    /// What the engine has of the child. The parent's checkpoint [takes it](Checkpoint::child_over).
    pub checkpoint: Checkpoint,
}
