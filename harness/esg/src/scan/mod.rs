//! What a step reads, binds, changes and deletes, from its source alone.
//!
//! The answer holds for every run of the step: where a branch, a loop that may not turn or an
//! exception leaves it open whether a name is bound, it counts as possibly read and possibly bound.
mod answer;
mod beside;
mod bodies;
mod calls;
mod compound;
mod constants;
mod declare;
mod dynamic;
mod effects;
mod expr;
mod flow;
mod identity;
mod index;
mod legality;
mod marks;
mod names;
mod parse;
mod scope;
mod sets;
mod sharing;
mod state;
mod stmt;
mod value;

use std::collections::BTreeSet;

pub use sets::{NameIter, NameMap, NameSet};

/// What one step may do to the names around it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scan {
    /// Global names, not builtins, that the step may load where it has not surely bound them: what
    /// it needs from the steps before it. A deleted name counts as read.
    pub reads: NameSet,
    /// Global names that only bodies load which the step makes and does not run.
    pub deferred_reads: NameSet,
    /// Names the step may bind.
    pub writes: NameSet,
    /// Of `writes`, those that the step surely binds and does not unbind, unless it fails.
    pub sure_writes: NameSet,
    /// Names that only bodies bind which the step makes and does not run.
    pub deferred_writes: NameSet,
    /// Names the step may unbind.
    pub deletes: NameSet,
    /// Names whose incoming object may be changed in place.
    pub mutates: NameSet,
    /// Names whose object the bodies may change in place that the step makes, or pass on to a
    /// callable that is not known, whenever one runs: in the step or after it.
    pub deferred_mutates: NameSet,
    /// For each name bound here: other names that may hold the same object or a part of it, be it
    /// one that came in under that name, be it one made here. Names that are tied to the same name
    /// may share as well.
    pub aliases: NameMap,
    /// Names whose incoming object goes to a callable that is not known.
    pub escapes: NameSet,
    /// Builtins loaded: they are read from a step that binds such a name.
    pub builtin_reads: NameSet,
    /// For each function or class bound here: every name, not a builtin, that its bodies load.
    pub summaries: NameMap,
    /// The functions and classes at the top of the step, in the order of the source.
    pub definitions: Vec<Definition>,
    /// What is imported, anywhere in the step.
    pub imports: Vec<Import>,
    /// Modules imported with a star: which names they bind is not known.
    pub star_imports: BTreeSet<String>,
    /// The step reaches names in ways no source tells: `exec`, `globals()`, a star import.
    pub opaque: bool,
    /// What the compiler would refuse. The other fields then hold what could be read all the same.
    pub errors: Vec<SyntaxError>,
    /// Identity of the code: a hash of its syntax tree, which layout and comments do not change.
    pub syntax: [u8; 32],
}

/// A function or class at the top of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Definition {
    /// The name it binds.
    pub name: String,
    /// Its lines in the step, decorators included, from 1.
    pub lines: std::ops::RangeInclusive<usize>,
    /// Its bytes in the source of the step, decorators included.
    pub range: std::ops::Range<usize>,
    /// The global names, not builtins, that it refers to: when defined or when called.
    pub references: NameSet,
    /// A hash of its syntax tree.
    pub syntax: [u8; 32],
}

/// One imported module.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Import {
    /// The module's dotted name, as written; relative imports keep their leading dots.
    pub module: String,
    /// The names taken from it with `from .. import`.
    pub names: Vec<String>,
    /// The line in the step, from 1.
    pub line: usize,
}

/// What the compiler would refuse, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyntaxError {
    /// What is wrong.
    pub message: String,
    /// The line in the step, from 1.
    pub line: usize,
    /// The column on that line, in characters from 1.
    pub column: usize,
}

/// Reads one step. See [`Scan`].
///
/// ```
/// let scan = harness_esg::scan("total = price * count");
/// assert!(scan.reads.contains("price") && scan.reads.contains("count"));
/// assert!(scan.writes.contains("total"));
/// ```
#[must_use]
pub fn scan(source: &str) -> Scan {
    answer::of(source)
}
