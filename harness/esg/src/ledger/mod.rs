//! What is known of a program: its versions, its executions and its replays, as a fold of records.
//!
//! [`Ledger::apply`] is the only function that changes a ledger, live and replayed. It has no worker,
//! no values and no files, so a ledger can be kept wherever records can.
mod history;
mod journal;
mod record;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

pub(crate) use history::History;
pub use journal::{Journal, JournalError};
pub use record::{Record, Snapshot};

use crate::blobs::BlobId;
use crate::program::{Program, ProgramError};
use crate::trace::Execution;

/// How many replays are kept with all executions that they ran or used.
const RUNS: u64 = 256;

/// How many executions more than twice those of the last snapshot are kept until the next one.
const SPARE: usize = 1000;

/// A program with its executions: everything about it that is stored, except for the values.
///
/// A ledger is a fold of its [records](Record): the same records give the same ledger, whether they
/// are applied one by one while a graph runs or all at once by a later process.
///
/// ```
/// use harness_esg::{Change, Ledger, Record};
///
/// let records = [
///     Record::Edited(Change::added("load", "rows = [3, 1]").into()),
///     Record::Edited(Change::added("sort", "rows.sort()").into()),
/// ];
/// let ledger = Ledger::fold(&records)?;
/// assert_eq!(ledger.program().len(), 2);
/// assert!(ledger.executions().is_empty());
/// # Ok::<(), harness_esg::ProgramError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub(crate) program: Program,
    pub(crate) history: History,
    /// The executions that represented the steps after each replay, in program order.
    runs: BTreeMap<u64, Vec<Arc<Execution>>>,
    /// Those of the last replay, by step.
    standing: BTreeMap<Arc<str>, Arc<Execution>>,
    /// The number of executions in the last snapshot.
    kept: usize,
}

impl Ledger {
    /// The ledger that results from these records.
    ///
    /// # Errors
    /// The error of the first record that does not apply.
    pub fn fold<'a>(records: impl IntoIterator<Item = &'a Record>) -> Result<Self, ProgramError> {
        let mut ledger = Self::default();
        for record in records {
            ledger.apply(record)?;
        }
        Ok(ledger)
    }

    /// Applies a record.
    ///
    /// # Errors
    /// If the program refuses the operation of [`Record::Edited`]. Nothing has changed then.
    pub fn apply(&mut self, record: &Record) -> Result<(), ProgramError> {
        match record {
            Record::Edited(operation) => {
                self.program.apply(operation.clone())?;
            }
            Record::Ran(execution) => self.history.push(execution.clone()),
            Record::Invalid(step) => self.history.invalidate(step),
            Record::Settled { run, executions } => {
                let found = executions.iter().filter_map(|seq| self.history.by_seq(*seq));
                let found: Vec<_> = found.cloned().collect();
                self.standing = found.iter().map(|one| (one.step.clone(), one.clone())).collect();
                self.runs.insert(*run, found);
            }
            Record::Snapshot(snapshot) => return self.restore(snapshot),
        }
        Ok(())
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), ProgramError> {
        let mut ledger = Self {
            program: match self.program.operations(0) == snapshot.operations {
                true => self.program.clone(),
                false => Program::fold(snapshot.operations.iter().cloned())?,
            },
            history: History::new(snapshot.invalid.clone()),
            kept: snapshot.executions.len(),
            ..Self::default()
        };
        for execution in &snapshot.executions {
            ledger.history.push(execution.clone());
        }
        for (run, executions) in &snapshot.runs {
            ledger.apply(&Record::Settled { run: *run, executions: executions.clone() })?;
        }
        *self = ledger;
        Ok(())
    }

    /// What later records need: the program with all its versions, and the executions that the last
    /// 256 replays ran or used, with the newest of each step. Records before a snapshot are not needed
    /// any more.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let first = (self.run() + 1).saturating_sub(RUNS);
        let recent = self.runs.range(first..);
        let used = recent.clone().flat_map(|(_, run)| run).chain(self.standing.values());
        let mut needed: HashSet<u64> = used.map(|execution| execution.seq).collect();
        needed.extend(self.history.newest().map(|execution| execution.seq));
        let all = self.history.all().iter();
        let seqs = |run: &Vec<Arc<Execution>>| run.iter().map(|one| one.seq).collect();
        Snapshot {
            operations: self.program.operations(0).to_vec(),
            executions: all
                .filter(|one| one.run >= first || needed.contains(&one.seq))
                .cloned()
                .collect(),
            invalid: self.history.invalid(),
            runs: recent.map(|(run, executions)| (*run, seqs(executions))).collect(),
        }
    }

    /// Whether a snapshot would be much shorter than the records since the last one.
    pub(crate) fn is_long(&self) -> bool {
        self.runs.len() as u64 > 2 * RUNS || self.history.all().len() > 2 * self.kept + SPARE
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The executions, oldest first.
    #[must_use]
    pub fn executions(&self) -> &[Arc<Execution>] {
        self.history.all()
    }

    /// The execution that represents a step since the last replay.
    #[must_use]
    pub fn execution(&self, step: &str) -> Option<&Arc<Execution>> {
        self.standing.get(step)
    }

    /// The executions that represent the steps since the last replay, by step.
    pub(crate) fn standing(&self) -> &BTreeMap<Arc<str>, Arc<Execution>> {
        &self.standing
    }

    /// The executions that represented the inputs and the steps after a replay, in program order.
    #[must_use]
    pub fn replayed(&self, run: u64) -> Option<&[Arc<Execution>]> {
        self.runs.get(&run).map(Vec::as_slice)
    }

    /// The number of the last replay that is known.
    pub(crate) fn run(&self) -> u64 {
        let ran = self.history.all().last().map_or(0, |execution| execution.run);
        self.runs.last_key_value().map_or(0, |(run, _)| *run).max(ran)
    }

    /// The stored values that the executions refer to. A store may drop any other.
    pub fn blobs(&self) -> impl Iterator<Item = BlobId> {
        self.history.all().iter().flat_map(|execution| execution.trace.blobs())
    }
}

impl From<Program> for Ledger {
    /// The ledger of a program that has not run.
    fn from(program: Program) -> Self {
        Self { program, ..Self::default() }
    }
}

impl PartialEq for Ledger {
    /// Whether the same records lead to both.
    fn eq(&self, other: &Self) -> bool {
        self.program == other.program
            && self.history == other.history
            && self.runs == other.runs
            && self.standing == other.standing
    }
}

#[cfg(test)]
mod tests;
