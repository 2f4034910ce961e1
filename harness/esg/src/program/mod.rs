//! Programs: ordered steps of code, all their versions, and what may depend on what.
mod apply;
mod artifact;
mod cells;
mod check;
mod edges;
mod edit;
mod error;
mod follow;
mod guard;
mod notebook;
mod operation;
mod order;
mod patch;
mod refusal;
mod script;
mod step;
mod version;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

pub use artifact::Part;
pub(crate) use check::INPUT;
pub use edges::{Edge, EdgeKind, EdgeSource, Edges, Observed, Origin};
pub use error::ProgramError;
pub use guard::Edit;
pub use operation::{Change, Operation};
pub use patch::{EditKind, Patch, StepEdit, unified};
pub use refusal::Refusal;
pub use step::{Input, Step};
pub use version::{Provenance, ProvenanceKind, Version, VersionId, VersionKind};

use edges::{Book, Facts, Net};
use order::{Order, Slot};

use crate::text::near;

/// An ordered list of steps with its whole history.
///
/// A program replays from its [operations](Program::operations): every change creates one and
/// applies it. Versions are never lost, and a step can go back to any of its own.
///
/// ```
/// use harness_esg::Program;
///
/// let mut program = Program::new();
/// program.push("load", "rows = [1, 2, 3]")?;
/// let first = program.push("clean", "rows = [r for r in rows if r > 1]")?;
/// program.replace("clean", "rows = [r for r in rows if r > 2]")?;
/// assert_eq!(program.position("clean"), Some(1));
///
/// program.rollback(first)?;
/// assert_eq!(&*program.step("clean")?.source, "rows = [r for r in rows if r > 1]");
/// # Ok::<(), harness_esg::ProgramError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// By slot.
    nodes: Vec<Node>,
    /// The inputs, by name, then the steps.
    order: Order,
    steps: HashMap<Arc<str>, Slot>,
    inputs: BTreeMap<Arc<str>, Slot>,
    removed: HashMap<Arc<str>, Removed>,
    versions: Vec<Version>,
    artifacts: BTreeMap<Arc<str>, Vec<Part>>,
    operations: Vec<Operation>,
    /// The recorded effects of steps, at their current version.
    observed: HashMap<Slot, Observed>,
    /// The static effects of each step.
    book: Book,
    /// Built on first use, then updated incrementally.
    net: OnceLock<Net>,
}

#[derive(Clone, Debug)]
enum Node {
    Step(Step),
    Input(Input),
    Gone,
}

/// A removed step.
#[derive(Clone, Debug)]
struct Removed {
    /// Its last version.
    version: VersionId,
    /// The step after it.
    before: Option<Arc<str>>,
}

impl Program {
    /// A program without steps.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The program that results from these operations.
    ///
    /// # Errors
    /// The error of the first operation that fails.
    pub fn fold(operations: impl IntoIterator<Item = Operation>) -> Result<Self, ProgramError> {
        let mut program = Self::new();
        for operation in operations {
            program.apply(operation)?;
        }
        Ok(program)
    }

    /// The steps, in order.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = &Step> {
        self.order.slots().iter().filter_map(|slot| match &self.nodes[slot.index()] {
            Node::Step(step) => Some(step),
            Node::Input(_) | Node::Gone => None,
        })
    }

    /// How many steps there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there are no steps.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The step with that id.
    ///
    /// # Errors
    /// [`ProgramError::UnknownStep`], with the most similar id.
    pub fn step(&self, id: &str) -> Result<&Step, ProgramError> {
        match self.steps.get(id).map(|slot| &self.nodes[slot.index()]) {
            Some(Node::Step(step)) => Ok(step),
            _ => Err(self.unknown(id)),
        }
    }

    /// The position of the step with that id, from 0.
    #[must_use]
    pub fn position(&self, id: &str) -> Option<usize> {
        self.steps.get(id).map(|slot| self.order.rank(*slot) - self.inputs.len())
    }

    /// The inputs, by name.
    pub fn inputs(&self) -> impl Iterator<Item = &Input> {
        self.inputs.values().filter_map(|slot| match &self.nodes[slot.index()] {
            Node::Input(input) => Some(input),
            _ => None,
        })
    }

    /// A version of a step or an input, current or former.
    ///
    /// # Errors
    /// [`ProgramError::UnknownVersion`].
    pub fn version(&self, id: VersionId) -> Result<&Version, ProgramError> {
        let unknown = ProgramError::UnknownVersion { version: id, count: self.versions.len() };
        self.versions.get(id.0 as usize).ok_or(unknown)
    }

    /// All versions, in the order of their creation.
    #[must_use]
    pub fn versions(&self) -> &[Version] {
        &self.versions
    }

    /// The parts of each artifact, by its name.
    #[must_use]
    pub fn artifacts(&self) -> &BTreeMap<Arc<str>, Vec<Part>> {
        &self.artifacts
    }

    /// The number of operations so far: a mark for [`operations`](Program::operations).
    #[must_use]
    pub fn mark(&self) -> usize {
        self.operations.len()
    }

    /// The operations since a mark, oldest first. 0 gives all of them.
    #[must_use]
    pub fn operations(&self, since: usize) -> &[Operation] {
        self.operations.get(since..).unwrap_or_default()
    }

    /// What steps may need of each other. The first call builds the index. Later changes update it
    /// at a cost proportional to the change.
    pub fn edges(&self) -> Edges<'_> {
        Edges::new(self, self.net.get_or_init(|| Net::of(&self.order, &self.book)))
    }

    /// Uses the recorded effects of a step instead of its scan until its code changes. This is not
    /// an operation: it comes from a run, not from an edit.
    ///
    /// # Errors
    /// [`ProgramError::UnknownStep`].
    pub fn observe(&mut self, id: &str, observed: Observed) -> Result<(), ProgramError> {
        let slot = self.slot(id)?;
        self.observed.insert(slot, observed);
        self.renew(slot);
        Ok(())
    }

    /// Whether recorded effects of the step are in use.
    pub(crate) fn is_observed(&self, id: &str) -> bool {
        self.steps.get(id).is_some_and(|slot| self.observed.contains_key(slot))
    }

    /// Discards the recorded effects of a step.
    pub(crate) fn unobserve(&mut self, id: &str) {
        let Some(slot) = self.steps.get(id).copied() else { return };
        if self.observed.remove(&slot).is_some() {
            self.renew(slot);
        }
    }

    fn facts(&mut self, slot: Slot) -> Option<Facts> {
        match self.nodes.get(slot.index())? {
            Node::Step(step) => Some(self.book.read(&step.scan, self.observed.get(&slot))),
            Node::Input(input) => Some(self.book.read_input(&input.name)),
            Node::Gone => None,
        }
    }

    /// Updates the index for a changed step.
    fn renew(&mut self, slot: Slot) {
        let facts = self.facts(slot);
        let Some(net) = self.net.get_mut() else {
            self.book.write(slot, facts);
            return;
        };
        // Most patches are inside of bodies, and change nothing that the index has.
        if facts.as_ref() == self.book.facts(slot) {
            return;
        }
        let left = net.leave(&self.order, &self.book, slot);
        self.book.write(slot, facts);
        net.enter(&self.order, &self.book, slot, left);
        net.settle(&self.order, &self.book);
    }

    /// Removes a step from the index, before it is removed.
    fn forget(&mut self, slot: Slot) {
        if let Some(net) = self.net.get_mut() {
            let left = net.leave(&self.order, &self.book, slot);
            net.gone(&self.order, slot, left);
        }
        self.book.write(slot, None);
    }

    fn settle(&mut self) {
        if let Some(net) = self.net.get_mut() {
            net.settle(&self.order, &self.book);
        }
    }

    fn slot(&self, id: &str) -> Result<Slot, ProgramError> {
        self.steps.get(id).copied().ok_or_else(|| self.unknown(id))
    }

    fn unknown(&self, id: &str) -> ProgramError {
        let near = near(id, self.steps.keys().map(|known| &**known)).map(str::to_owned);
        ProgramError::UnknownStep { step: id.to_owned(), near }
    }
}

impl PartialEq for Program {
    /// Two programs are equal if they have the same history.
    fn eq(&self, other: &Self) -> bool {
        self.operations == other.operations
            && self.versions == other.versions
            && self.artifacts == other.artifacts
            && self.inputs().eq(other.inputs())
            && self.steps().eq(other.steps())
    }
}

#[cfg(test)]
mod tests;
