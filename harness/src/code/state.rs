//! The program of a session, as a field of its state.
use std::fmt;
use std::sync::Arc;

use harness_esg::{Diagnosis, Ledger, Program, ProgramError, Provenance, Record};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::state::{FieldOps, Fold, Has};

/// A program of code steps with its executions: the type of a field `#[state(esg)]`.
///
/// The log of the session is the journal of the program: each change of the field is a
/// [record](Record) of its [ledger](Ledger), so a fork has a program of its own, and an earlier state
/// has the program as it was. The values are not here but in the blobs of the [`Bench`](super::Bench).
///
/// ```
/// use harness::code::Code;
/// use harness::esg::Program;
/// use harness::prelude::*;
///
/// #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
/// struct Analysis {
///     task: String,
///     #[state(esg)]
///     code: Code,
/// }
///
/// let program = Program::from_script("# %% load\nrows = [3, 1]\n# %% total\ntotal = sum(rows)")?;
/// let input = Analysis::update().code(Code::added(&program));
/// # let _ = input;
/// # Ok::<(), harness::esg::ProgramError>(())
/// ```
#[derive(Clone, Default)]
pub struct Code(Arc<Inner>);

#[derive(Clone, Default)]
struct Inner {
    records: Vec<Record>,
    ledger: Ledger,
    diagnosis: Option<Diagnosis>,
    reviewed: Option<Reviewed>,
    /// Equal if the records are.
    mark: Mark,
}

/// Identifies a sequence of records.
pub(super) type Mark = [u8; 32];

/// A change of a [`Code`]. A step whose update has one that does not apply, because the program has changed
/// meanwhile, fails with [`FailureKind::Refused`](crate::FailureKind::Refused), and changes nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CodeChange {
    /// Something happened to the program or its executions.
    Record(Box<Record>),
    /// Why it fails, or that it does not.
    Diagnosed(Option<Box<Diagnosis>>),
    /// A person decided about it.
    Reviewed(Option<Reviewed>),
}

impl From<Record> for CodeChange {
    fn from(record: Record) -> Self {
        Self::Record(Box::new(record))
    }
}

/// What a person decided about a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reviewed {
    /// It is right.
    Approved,
    /// It is not.
    Rejected {
        /// What to change.
        comment: String,
    },
}

/// A state with a program: it has a field `#[state(esg)]` of the type [`Code`].
#[diagnostic::on_unimplemented(
    message = "the state `{Self}` has no program of code steps",
    note = "give it a field: `#[state(esg)] code: Code`"
)]
pub trait Coded: Has<Code, Change = Vec<CodeChange>> {}

#[diagnostic::do_not_recommend]
impl<S: Has<Code, Change = Vec<CodeChange>>> Coded for S {}

/// The program of a state.
pub(super) fn program_of<S: Coded>(state: &S) -> &Code {
    state.part()
}

impl Code {
    /// The changes that add the steps, inputs and artifacts of a program to a state without one. A state that
    /// has one refuses them: [`following`](Self::following) makes those that lead from one to the other.
    #[must_use]
    pub fn added(program: &Program) -> Vec<CodeChange> {
        let operations = program.operations(0).iter().cloned();
        operations.map(|operation| Record::Edited(operation).into()).collect()
    }

    /// The changes that make the program equal to another in its steps, signed with where they come
    /// from. Steps that are the same keep their executions.
    ///
    /// # Errors
    /// If a step of the other cannot be a step of this one.
    pub fn following(
        &self,
        other: &Program,
        provenance: &Provenance,
    ) -> Result<Vec<CodeChange>, ProgramError> {
        let changes = self.edited(|program| program.follow(other))?;
        let signed = |change| match change {
            CodeChange::Record(record) => match *record {
                Record::Edited(edit) => Record::Edited(edit.signed(provenance.clone())).into(),
                other => other.into(),
            },
            other => other,
        };
        Ok(changes.into_iter().map(signed).collect())
    }

    /// The changes that an edit of the program makes.
    ///
    /// ```
    /// use harness::code::{Code, CodeChange};
    /// use harness::esg::{ProgramError, VersionId};
    ///
    /// /// Takes a patch back.
    /// fn undone(code: &Code, before: VersionId) -> Result<Vec<CodeChange>, ProgramError> {
    ///     code.edited(|program| program.rollback(before).map(drop))
    /// }
    /// # assert!(undone(&Code::default(), serde_json::from_str("7")?).is_err());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the edit. There is no change then.
    pub fn edited(
        &self,
        edit: impl FnOnce(&mut Program) -> Result<(), ProgramError>,
    ) -> Result<Vec<CodeChange>, ProgramError> {
        let mut program = self.program().clone();
        let mark = program.mark();
        edit(&mut program)?;
        let operations = program.operations(mark).iter().cloned();
        Ok(operations.map(|operation| Record::Edited(operation).into()).collect())
    }

    /// What is known of the program: its versions, its executions and its replays.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Program {
        self.0.ledger.program()
    }

    /// Why the program fails, as the step [`diagnose`](super::diagnose()) found it after the last replay.
    /// `None` before it, or if nothing fails.
    #[must_use]
    pub fn diagnosis(&self) -> Option<&Diagnosis> {
        self.0.diagnosis.as_ref()
    }

    /// What a person decided about the program as it is; `None` once it has changed.
    #[must_use]
    pub fn reviewed(&self) -> Option<&Reviewed> {
        self.0.reviewed.as_ref()
    }

    /// Whether there is a step, and every step has an execution that ended well, of the source it has now. It
    /// says how the last replay ended: what another input, or a step that was removed or moved, changes shows once the
    /// program has [run](super::execute()).
    #[must_use]
    pub fn is_ok(&self) -> bool {
        let stands = |step: &harness_esg::Step| {
            let execution = self.0.ledger.execution(&step.id);
            execution.is_some_and(|it| it.ending.is_ok() && it.syntax == step.syntax)
        };
        !self.program().is_empty() && self.program().steps().all(stands)
    }

    pub(super) fn mark(&self) -> Mark {
        self.0.mark
    }

    /// Adds records. What is shared with another state is copied, once.
    pub(super) fn extend(&mut self, records: &[Record]) -> Result<(), ProgramError> {
        records.iter().try_for_each(|record| self.push(record.clone()))
    }

    /// Adds a record, if it applies.
    fn push(&mut self, record: Record) -> Result<(), ProgramError> {
        let inner = Arc::make_mut(&mut self.0);
        inner.ledger.apply(&record)?;
        if matches!(record, Record::Snapshot(_)) {
            inner.records.clear();
        }
        if matches!(record, Record::Edited(_)) {
            inner.reviewed = None;
        }
        inner.mark = next(&inner.mark, &record);
        inner.records.push(record);
        Ok(())
    }
}

/// The mark after one more record.
pub(super) fn next(mark: &Mark, record: &Record) -> Mark {
    let mut hash = hmac_sha256::Hash::new();
    if !matches!(record, Record::Snapshot(_)) {
        hash.update(mark);
    }
    // A record that cannot be written fails the commit that holds it.
    hash.update(serde_json::to_vec(record).unwrap_or_default());
    hash.finalize()
}

#[diagnostic::do_not_recommend]
impl Fold for Code {
    type Item = CodeChange;

    fn fold(&mut self, change: CodeChange, ops: &mut FieldOps<'_>) {
        match change {
            CodeChange::Record(record) => {
                let had_review = self.0.reviewed.is_some();
                if let Err(error) = self.push(*record) {
                    return ops.refuse(error);
                }
                if had_review && self.0.reviewed.is_none() {
                    ops.key("reviewed").set(&self.0.reviewed);
                }
                match self.0.records.as_slice() {
                    [only @ Record::Snapshot(_)] => ops.key("records").set(&[only]),
                    [.., last] => ops.key("records").push(last),
                    [] => {}
                }
            }
            CodeChange::Diagnosed(diagnosis) => {
                Arc::make_mut(&mut self.0).diagnosis = diagnosis.map(|found| *found);
                ops.key("diagnosis").set(&self.0.diagnosis);
            }
            CodeChange::Reviewed(reviewed) => {
                Arc::make_mut(&mut self.0).reviewed = reviewed;
                ops.key("reviewed").set(&self.0.reviewed);
            }
        }
    }
}

/// Compares what is stored.
impl PartialEq for Code {
    fn eq(&self, other: &Self) -> bool {
        self.0.mark == other.0.mark
            && self.0.diagnosis == other.0.diagnosis
            && self.0.reviewed == other.0.reviewed
    }
}

/// Without the content of the program.
impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code")
            .field("steps", &self.program().len())
            .field("executions", &self.ledger().executions().len())
            .finish_non_exhaustive()
    }
}

/// How it is stored.
#[derive(Serialize, Deserialize)]
struct Written<R> {
    records: R,
    #[serde(default)]
    diagnosis: Option<Diagnosis>,
    #[serde(default)]
    reviewed: Option<Reviewed>,
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Inner { records, diagnosis, reviewed, .. } = &*self.0;
        let (diagnosis, reviewed) = (diagnosis.clone(), reviewed.clone());
        Written { records, diagnosis, reviewed }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written: Written<Vec<Record>> = Written::deserialize(deserializer)?;
        let ledger = Ledger::fold(&written.records).map_err(serde::de::Error::custom)?;
        let mark = written.records.iter().fold(Mark::default(), |mark, record| next(&mark, record));
        let Written { records, diagnosis, reviewed } = written;
        Ok(Self(Arc::new(Inner { records, ledger, diagnosis, reviewed, mark })))
    }
}
