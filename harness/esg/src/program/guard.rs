//! Changes that apply together.
use std::ops::Deref;

use serde_json::Value;

use super::artifact::Part;
use super::patch::Patch;
use super::{Change, Operation, Program, ProgramError, Provenance, VersionId};

/// Changes of a program that apply and are recorded together, or not at all: see
/// [`CodeGraph::edit`](crate::CodeGraph::edit). It reads as the changed [`Program`].
#[derive(Debug)]
pub struct Edit<'a> {
    program: &'a mut Program,
    mark: usize,
    provenance: Provenance,
}

impl<'a> Edit<'a> {
    pub(crate) fn new(program: &'a mut Program) -> Self {
        Self { mark: program.mark(), program, provenance: Provenance::default() }
    }

    /// The changes so far.
    pub(crate) fn changes(&self) -> &[Operation] {
        self.program.operations(self.mark)
    }

    /// Keeps the changes. They are undone if the edit is dropped before.
    pub(crate) fn keep(mut self) {
        self.mark = self.program.mark();
    }

    /// Sets where the changes that follow come from.
    ///
    /// ```
    /// use harness_esg::{Blobs, CPython, CodeGraph, Program, Provenance, ProvenanceKind, Trust};
    ///
    /// let python = CPython::find().trust(Trust::Mine).start()?;
    /// let mut graph = CodeGraph::new(Program::new(), python, Blobs::memory());
    /// let first = graph.edit(|edit| edit.push("load", "xs = [1]"))?;
    ///
    /// // A patch that was made for a version does not replace another.
    /// let patch = Provenance::new(ProvenanceKind::Patched).agent("fixer").parent(first);
    /// let patched = graph.edit(|edit| {
    ///     edit.sign(patch.clone());
    ///     edit.replace("load", "xs = [1, 2]")
    /// })?;
    /// assert_eq!(graph.program().version(patched)?.provenance, patch);
    /// let refused = graph.edit(|edit| {
    ///     edit.sign(patch);
    ///     edit.replace("load", "xs = [1, 3]")
    /// });
    /// assert!(refused.unwrap_err().as_program().is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sign(&mut self, provenance: Provenance) {
        self.provenance = provenance;
    }

    /// As [`Program::push`].
    ///
    /// # Errors
    /// As [`Program::push`].
    pub fn push(&mut self, id: &str, source: &str) -> Result<VersionId, ProgramError> {
        self.made(Change::added(id, source))
    }

    /// As [`Program::insert_before`].
    ///
    /// # Errors
    /// As [`Program::insert_before`].
    pub fn insert_before(
        &mut self,
        before: &str,
        id: &str,
        source: &str,
    ) -> Result<VersionId, ProgramError> {
        let before = Some(before.into());
        self.made(Change::Added { step: id.into(), source: source.into(), before })
    }

    /// As [`Program::replace`].
    ///
    /// # Errors
    /// As [`Program::replace`].
    pub fn replace(&mut self, id: &str, source: &str) -> Result<VersionId, ProgramError> {
        self.made(Change::replaced(id, source))
    }

    /// As [`Program::patch`]. The changes come from where the patch says.
    ///
    /// # Errors
    /// As [`Program::patch`].
    pub fn patch(&mut self, patch: &Patch) -> Result<Vec<VersionId>, ProgramError> {
        self.program.patch(patch)
    }

    /// As [`Program::remove`].
    ///
    /// # Errors
    /// As [`Program::remove`].
    pub fn remove(&mut self, id: &str) -> Result<(), ProgramError> {
        self.change(Change::Removed { step: id.into() }).map(drop)
    }

    /// As [`Program::move_before`].
    ///
    /// # Errors
    /// As [`Program::move_before`].
    pub fn move_before(&mut self, id: &str, before: &str) -> Result<(), ProgramError> {
        self.change(Change::Moved { step: id.into(), before: Some(before.into()) }).map(drop)
    }

    /// As [`Program::move_last`].
    ///
    /// # Errors
    /// As [`Program::move_last`].
    pub fn move_last(&mut self, id: &str) -> Result<(), ProgramError> {
        self.change(Change::Moved { step: id.into(), before: None }).map(drop)
    }

    /// As [`Program::rollback`].
    ///
    /// # Errors
    /// As [`Program::rollback`].
    pub fn rollback(&mut self, version: VersionId) -> Result<VersionId, ProgramError> {
        self.made(Change::RolledBack { version })
    }

    /// As [`Program::input`].
    ///
    /// # Errors
    /// As [`Program::input`].
    pub fn input(&mut self, name: &str, value: Value) -> Result<VersionId, ProgramError> {
        self.made(Change::Input { name: name.into(), value })
    }

    /// As [`Program::input_json`].
    ///
    /// # Errors
    /// As [`Program::input_json`].
    pub fn input_json(&mut self, name: &str, json: &str) -> Result<VersionId, ProgramError> {
        self.made(Change::InputJson { name: name.into(), json: json.into() })
    }

    /// As [`Program::artifact`].
    ///
    /// # Errors
    /// As [`Program::artifact`].
    pub fn artifact(
        &mut self,
        name: &str,
        parts: impl IntoIterator<Item = Part>,
    ) -> Result<(), ProgramError> {
        let parts = parts.into_iter().collect();
        self.change(Change::Artifact { name: name.into(), parts }).map(drop)
    }

    /// As [`Program::follow`].
    ///
    /// # Errors
    /// As [`Program::follow`].
    pub fn follow(&mut self, other: &Program) -> Result<(), ProgramError> {
        let mut copy = Program::clone(self);
        copy.follow(other)?;
        let operations = copy.operations(self.mark()).iter();
        operations.cloned().try_for_each(|operation| self.change(operation.change).map(drop))
    }

    /// Applies one change. Returns the version that it made or returned to, if any.
    ///
    /// # Errors
    /// Those of the method for this change.
    pub fn change(&mut self, change: Change) -> Result<Option<VersionId>, ProgramError> {
        let operation = Operation::from(change).signed(self.provenance.clone());
        self.program.apply(operation)
    }

    fn made(&mut self, change: Change) -> Result<VersionId, ProgramError> {
        // These changes make a version or return to one.
        self.change(change).map(|made| made.unwrap_or(VersionId(0)))
    }
}

impl Deref for Edit<'_> {
    type Target = Program;

    fn deref(&self) -> &Program {
        self.program
    }
}

impl Drop for Edit<'_> {
    fn drop(&mut self) {
        if self.program.mark() == self.mark {
            return;
        }
        match Program::fold(self.program.operations(0)[..self.mark].iter().cloned()) {
            Ok(before) => *self.program = before,
            // They applied before.
            Err(error) => tracing::error!(%error, "failed to undo the changes of a program"),
        }
    }
}
