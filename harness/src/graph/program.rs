use crate::context::Context;
use crate::state::State;
use crate::step::{Action, Route};

use super::Graph;

/// A sound loop with its code: the graph, and what runs at each node of it.
pub(crate) struct Program<C: Context, S: State> {
    pub(crate) graph: Graph,
    pub(crate) steps: Vec<Executable<C, S>>,
}

/// What runs at a node of the graph.
pub(crate) struct Executable<C: Context, S: State> {
    pub(crate) action: Action<C, S>,
    pub(crate) route: Option<Route<S>>,
}
