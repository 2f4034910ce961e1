use crate::context::Context;
use crate::state::State;
use crate::step::{Action, Route};

use super::Graph;

/// A validated loop with its code: the graph, and an executable for each node.
pub(crate) struct Program<C: Context, S: State> {
    pub(crate) graph: Graph,
    pub(crate) steps: Vec<Executable<C, S>>,
}

/// The code of a node.
pub(crate) struct Executable<C: Context, S: State> {
    pub(crate) action: Action<C, S>,
    pub(crate) route: Option<Route<S>>,
}
