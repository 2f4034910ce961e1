//! Edges: which step may need which.
//!
//! Before a step has run, its edges follow from its [scan](crate::scan()) and those of the other
//! steps: each name it may load comes from the last step before it that surely binds the name, and
//! from every step in between that may bind, unbind or change it. After it has run, its edges
//! follow from its [recorded effects](Observed).
mod book;
mod channel;
mod facts;
mod names;
mod net;
mod query;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

pub use query::Edges;

pub(super) use book::Book;
pub(super) use facts::Facts;
pub(super) use net::Net;

use crate::model::{Entity, List};

/// Why one step needs another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum EdgeKind {
    /// The reader loads what the producer may have bound, unbound or changed.
    Flow,
    /// Functions that the reader calls load it, wherever they are defined.
    LateBound,
    /// The reader changes an object through another name.
    Alias,
    /// No value passes: the reader removes or replaces what the producer needs or made.
    Order,
}

/// How an edge is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum EdgeSource {
    /// From the sources: it is possible.
    Static,
    /// From runs of both steps: it happened.
    Traced,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// The input of that name.
    Input(Arc<str>),
    /// The step of that id.
    Step(Arc<str>),
}

impl Origin {
    /// The step, if it is one.
    #[must_use]
    pub fn as_step(&self) -> Option<&str> {
        match self {
            Self::Step(id) => Some(id),
            Self::Input(_) => None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(name) => write!(f, "input {name}"),
            Self::Step(id) => f.write_str(id),
        }
    }
}

/// One step may need another, or an input.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Edge {
    /// What is needed.
    pub producer: Origin,
    /// The step that needs it.
    pub reader: Arc<str>,
    /// The channels. [`Entity::Everything`] stands for names that the source does not determine.
    pub channels: Vec<Entity>,
    /// Why.
    pub kind: EdgeKind,
    /// How it is known.
    pub source: EdgeSource,
}

impl fmt::Display for EdgeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flow => "flow",
            Self::LateBound => "late-bound",
            Self::Alias => "alias",
            Self::Order => "order",
        })
    }
}

impl fmt::Display for Edge {
    /// `load -> clean: rows (flow)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = List(&self.channels).to_string().replace('`', "");
        write!(f, "{} -> {}: {what} ({})", self.producer, self.reader, self.kind)
    }
}

/// The recorded effects of a run: every channel the step read, and every one it changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Observed {
    /// What it read.
    pub reads: BTreeSet<Entity>,
    /// What it did not read but changed or aliased, through objects shared with what it read.
    pub altered: BTreeSet<Entity>,
    /// What it bound, changed or deleted.
    pub wrote: BTreeSet<Entity>,
}

impl Observed {
    /// A run that read `reads` and left `wrote` changed.
    #[must_use]
    pub fn new(
        reads: impl IntoIterator<Item = Entity>,
        wrote: impl IntoIterator<Item = Entity>,
    ) -> Self {
        let (reads, wrote) = (reads.into_iter().collect(), wrote.into_iter().collect());
        Self { reads, wrote, ..Self::default() }
    }

    /// The same, with `altered` changed through other names.
    #[must_use]
    pub fn altering(mut self, altered: impl IntoIterator<Item = Entity>) -> Self {
        self.altered.extend(altered);
        self
    }
}

#[cfg(test)]
mod tests;
