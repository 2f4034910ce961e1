//! Edges: which step may need which.
//!
//! Before a step has run, its edges are read off its [scan](crate::scan()) and those of the
//! steps around it: each name it may load comes from the last step before it that surely binds the
//! name, and from every step in between that may bind, unbind or change it. After it has run, they
//! are read off what it was [seen](Observed) to do.
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
    /// Functions that the reader calls load it, wherever they were defined.
    LateBound,
    /// The reader changes an object that it reaches by another name.
    Alias,
    /// No value passes: the reader takes away or replaces what the producer needs, or left.
    Order,
}

/// How an edge is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum EdgeSource {
    /// From the sources: it may be.
    Static,
    /// From runs of both steps: it is.
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
    /// What for. [`Entity::Everything`] stands for names that no source tells.
    pub channels: Vec<Entity>,
    /// Why.
    pub kind: EdgeKind,
    /// How that is known.
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

/// What a step was seen to do when it ran: every channel it read, and every one it left changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Observed {
    /// What it read.
    pub reads: BTreeSet<Entity>,
    /// What it never looked at, and changed or tied to something through objects it shares.
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

    /// The same, where it also reached `altered` by other names.
    #[must_use]
    pub fn altering(mut self, altered: impl IntoIterator<Item = Entity>) -> Self {
        self.altered.extend(altered);
        self
    }
}

#[cfg(test)]
mod tests;
