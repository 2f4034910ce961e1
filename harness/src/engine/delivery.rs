//! What a session on an engine has for another one: the start and the stop of a child, and the news that
//! its turn is over.

use crate::run::ChildStart;

use super::checkpoint::{ChildOver, ChildStop};

/// What an invocation has for another session. Each says which agent and session it is for.
#[derive(Debug)]
#[non_exhaustive]
pub enum Delivery {
    /// For the child: an invocation of it has to [run it](super::Invocation::child).
    Start(ChildStart),
    /// For the parent, that the turn of a child is over.
    Over(ChildOver),
    /// For the child, that its parent has settled without it: the run that is at work on the child has to
    /// stop. When the parent is resumed, it starts the child again, which continues.
    Stop(ChildStop),
}
