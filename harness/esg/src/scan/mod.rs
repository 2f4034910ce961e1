//! What a step reads, binds, changes and deletes, from its source alone.
//!
//! The result holds for every run of the step: if a branch, a loop or an exception leaves open
//! whether a name is bound, the name counts as possibly read and possibly bound.
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
mod library;
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

#[cfg(feature = "monty")]
pub(crate) use beside::roomy;
pub use sets::{NameIter, NameMap, NameSet};

/// The possible effects of a step on names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scan {
    /// Globals, except builtins, that the step may load where it has not surely bound them: its
    /// inputs. A deleted name counts as read.
    pub reads: NameSet,
    /// Globals loaded only by bodies that the step defines and does not run.
    pub deferred_reads: NameSet,
    /// Names the step may bind.
    pub writes: NameSet,
    /// The subset of `writes` that the step surely binds and does not unbind, unless it fails.
    pub sure_writes: NameSet,
    /// Names bound only by bodies that the step defines and does not run.
    pub deferred_writes: NameSet,
    /// The subset of `writes` that bodies which the step defines may bind too, whenever they run.
    pub rebinds: NameSet,
    /// Names the step may unbind.
    pub deletes: NameSet,
    /// Names whose incoming object may be mutated.
    pub mutates: NameSet,
    /// Names whose object may be mutated by bodies that the step defines or passes to an unknown
    /// callable, whenever they run.
    pub deferred_mutates: NameSet,
    /// For each bound name: other names that may hold the same object or a part of it, whether
    /// incoming or made here. Names linked to the same name may share objects as well.
    pub aliases: NameMap,
    /// Names whose incoming object is passed to an unknown callable.
    pub escapes: NameSet,
    /// Channels besides names that the step, or a body that it defines, may change, as far as standard
    /// functions that it names do: `files`, or a part of the state of the process, like `rng`; `modules` if
    /// it sets an attribute of what it imports.
    pub channels: BTreeSet<&'static str>,
    /// Builtins loaded. An earlier step may bind such a name.
    pub builtin_reads: NameSet,
    /// For each function or class bound here: every name, except builtins, that its bodies load.
    pub summaries: NameMap,
    /// The top-level functions and classes, in source order.
    pub definitions: Vec<Definition>,
    /// All imports anywhere in the step.
    pub imports: Vec<Import>,
    /// Modules imported with a star. The names they bind are unknown.
    pub star_imports: BTreeSet<String>,
    /// The step accesses names in ways the source does not determine: `exec`, `globals()`, a star
    /// import.
    pub opaque: bool,
    /// Syntax errors. The other fields then cover what could be parsed.
    pub errors: Vec<SyntaxError>,
    /// Identity of the code: a hash of its syntax tree, which ignores layout and comments.
    pub syntax: [u8; 32],
}

/// A top-level function or class of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Definition {
    /// The name it binds.
    pub name: String,
    /// Its lines in the step, including decorators, from 1.
    pub lines: std::ops::RangeInclusive<usize>,
    /// Its bytes in the source of the step, including decorators.
    pub range: std::ops::Range<usize>,
    /// The globals, except builtins, that it refers to when defined or when called.
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

/// A syntax error and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyntaxError {
    /// The message.
    pub message: String,
    /// The line in the step, from 1.
    pub line: usize,
    /// The column on that line, in characters from 1.
    pub column: usize,
}

/// Scans the source of one step. See [`Scan`].
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
