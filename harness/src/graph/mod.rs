//! The loop as data: its steps, its edges, and where each was declared.
//!
//! Two exhaustive `match`es in the user's code are called once per variant while the loop is built,
//! and their results form this graph. `build()` checks what rustc cannot check, and reports all
//! violations together. A built graph is immutable.

mod budget;
mod components;
mod drawing;
mod error;
mod program;
mod render;
mod target;
mod validate;
mod violation;
mod wiring;

use std::fmt;
use std::sync::Arc;

pub use budget::{Budget, Limit};
pub use drawing::Drawing;
pub use error::BuildError;
pub(crate) use target::To;
pub use target::{Target, end, end_with, to};
pub use violation::{Declared, Rule, Violation};

pub(crate) use budget::FINALLY;
pub(crate) use program::{Executable, Program};
#[cfg(feature = "report")]
pub(crate) use render::mermaid_label;
pub(crate) use validate::{violations, violations_with};
pub(crate) use wiring::{AtMost, Branch, Dest, Edge, Exit, Expiry, Kind, Node, Wiring};

/// The graph of a loop: immutable and cheap to clone. `Debug` and `Display` draw a Mermaid diagram.
#[derive(Clone)]
pub struct Graph {
    pub(crate) wiring: Arc<Wiring>,
}

impl Graph {
    /// The loop's name.
    pub fn name(&self) -> &str {
        &self.wiring.name
    }

    /// The names of the steps, in the order of their enum.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = &str> {
        self.wiring.nodes.iter().map(|node| &*node.name)
    }

    /// The step that a new session starts with.
    pub fn start(&self) -> &str {
        self.wiring.nodes.get(self.wiring.start).map_or("", |node| &*node.name)
    }

    /// The loop as a [Mermaid](https://mermaid.js.org/syntax/flowchart.html) flowchart. Boxes are
    /// steps, diamonds are decisions, hexagons are gates, and dotted edges are taken on failure.
    pub fn to_mermaid(&self) -> String {
        render::mermaid(&self.wiring, None)
    }

    /// The loop as a [Graphviz](https://graphviz.org/doc/info/lang.html) digraph.
    pub fn to_dot(&self) -> String {
        render::dot(&self.wiring, None)
    }

    /// The edges by the names of their steps: see [`render::edges`].
    #[cfg(feature = "report")]
    pub(crate) fn edges(&self) -> Vec<(Option<&str>, Option<&str>, bool)> {
        render::edges(&self.wiring)
    }

    /// A drawing on which a path can be marked.
    pub fn drawing(&self) -> Drawing {
        Drawing::new(Arc::clone(&self.wiring))
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_mermaid())
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_mermaid())
    }
}
