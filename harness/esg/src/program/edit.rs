//! Changes of a program. Every change is an operation.
use serde_json::Value;

use crate::scan::Scan;

use super::artifact::Part;
use super::{Change, Operation, Program, ProgramError, VersionId};

impl Program {
    /// Appends a step.
    ///
    /// # Errors
    /// [`ProgramError::DuplicateStep`], [`ProgramError::BadId`].
    pub fn push(&mut self, id: &str, source: &str) -> Result<VersionId, ProgramError> {
        self.made(Change::added(id, source), None)
    }

    /// Appends a step with a known scan, which must be the result of [`scan`](crate::scan()) for the source.
    ///
    /// # Errors
    /// As [`push`](Program::push).
    pub fn push_scanned(
        &mut self,
        id: &str,
        source: &str,
        scan: Scan,
    ) -> Result<VersionId, ProgramError> {
        self.made(Change::added(id, source), Some(scan))
    }

    /// Inserts a step before another.
    ///
    /// # Errors
    /// [`ProgramError::UnknownStep`] for `before`, and as [`push`](Program::push).
    pub fn insert_before(
        &mut self,
        before: &str,
        id: &str,
        source: &str,
    ) -> Result<VersionId, ProgramError> {
        let before = Some(before.into());
        self.made(Change::Added { step: id.into(), source: source.into(), before }, None)
    }

    /// Replaces the source of a step. The same text makes no new version.
    ///
    /// # Errors
    /// [`ProgramError::UnknownStep`].
    pub fn replace(&mut self, id: &str, source: &str) -> Result<VersionId, ProgramError> {
        self.made(Change::replaced(id, source), None)
    }

    /// Replaces the source of a step, with a known scan, which must be the result of [`scan`](crate::scan()) for
    /// it.
    ///
    /// # Errors
    /// As [`replace`](Program::replace).
    pub fn replace_scanned(
        &mut self,
        id: &str,
        source: &str,
        scan: Scan,
    ) -> Result<VersionId, ProgramError> {
        self.made(Change::replaced(id, source), Some(scan))
    }

    /// Removes a step. Its versions stay: a [`rollback`](Program::rollback) to one restores it.
    ///
    /// # Errors
    /// [`ProgramError::UnknownStep`].
    pub fn remove(&mut self, id: &str) -> Result<(), ProgramError> {
        self.apply(Change::Removed { step: id.into() }.into()).map(|_| ())
    }

    /// Moves a step before another.
    ///
    /// # Errors
    /// [`ProgramError::UnknownStep`] for either.
    pub fn move_before(&mut self, id: &str, before: &str) -> Result<(), ProgramError> {
        self.apply(Change::Moved { step: id.into(), before: Some(before.into()) }.into())
            .map(|_| ())
    }

    /// Moves a step to the end.
    ///
    /// # Errors
    /// [`ProgramError::UnknownStep`].
    pub fn move_last(&mut self, id: &str) -> Result<(), ProgramError> {
        self.apply(Change::Moved { step: id.into(), before: None }.into()).map(|_| ())
    }

    /// Returns a step, or an input, to one of its versions. The version it leaves is kept, and the
    /// next version has this one as its parent. A removed step returns to its former position if
    /// the step after it still exists, and to the end otherwise.
    ///
    /// Returns the version that is now current.
    ///
    /// # Errors
    /// [`ProgramError::UnknownVersion`].
    pub fn rollback(&mut self, version: VersionId) -> Result<VersionId, ProgramError> {
        self.made(Change::RolledBack { version }, None)
    }

    /// Binds a name before the first step, or changes its value.
    ///
    /// # Errors
    /// [`ProgramError::BadInput`], [`ProgramError::InputJson`].
    pub fn input(&mut self, name: &str, value: Value) -> Result<VersionId, ProgramError> {
        self.made(Change::Input { name: name.into(), value }, None)
    }

    /// As [`input`](Program::input), with the value as a JSON text. Python parses it, so its
    /// integers have any size. A [`Value`] holds those of more than 64 bits as floats.
    ///
    /// ```
    /// use harness_esg::Program;
    ///
    /// let mut program = Program::new();
    /// program.input_json("keys", "[340282366920938463463374607431768211456]")?;
    /// # Ok::<(), harness_esg::ProgramError>(())
    /// ```
    ///
    /// # Errors
    /// As [`input`](Program::input).
    pub fn input_json(&mut self, name: &str, json: &str) -> Result<VersionId, ProgramError> {
        self.made(Change::InputJson { name: name.into(), json: json.into() }, None)
    }

    /// Names a view over steps and names. Without parts, the artifact is removed.
    ///
    /// # Errors
    /// [`ProgramError::UnknownStep`] for a part, [`ProgramError::BadId`] for the name.
    pub fn artifact(
        &mut self,
        name: &str,
        parts: impl IntoIterator<Item = Part>,
    ) -> Result<(), ProgramError> {
        let parts = parts.into_iter().collect();
        self.apply(Change::Artifact { name: name.into(), parts }.into()).map(|_| ())
    }

    /// Applies one operation. Returns the version that it made or returned to, if any. An operation
    /// that changes nothing is not recorded.
    ///
    /// # Errors
    /// Those of the method for this change. Nothing has changed then.
    pub fn apply(&mut self, operation: Operation) -> Result<Option<VersionId>, ProgramError> {
        self.perform(operation, None)
    }

    fn made(&mut self, change: Change, scan: Option<Scan>) -> Result<VersionId, ProgramError> {
        // These changes make a version or return to one.
        self.perform(change.into(), scan).map(|made| made.unwrap_or(VersionId(0)))
    }
}
