//! What a session on an engine has for another one: the start of a child, and the news that its turn is
//! over.

use crate::run::ChildStart;

use super::checkpoint::ChildOver;

/// What an invocation has for another session. Each says which agent and session it is for.
#[derive(Debug)]
#[non_exhaustive]
pub enum Delivery {
    /// For the child: an invocation of it has to [run it](super::Invocation::child).
    Start(ChildStart),
    /// For the parent, that the turn of a child is over.
    Over(ChildOver),
}
