//! All executions, and those of each version of each step.
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::model::{Fingerprint, UnitKey};
use crate::trace::Execution;

/// How many executions of one version are tried, newest first. Without a limit, a step that never
/// verifies would cost more with each replay.
const TRIED: usize = 8;

/// All executions, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct History {
    all: Vec<Arc<Execution>>,
    /// By step and code, positions in `all`.
    versions: HashMap<(Arc<str>, Fingerprint), Vec<usize>>,
    /// By step, positions in `all`.
    steps: HashMap<Arc<str>, Vec<usize>>,
    /// The execution that made each unit.
    made: HashMap<UnitKey, usize>,
    /// By number; the latest record if there are several.
    numbers: HashMap<u64, usize>,
    /// The number up to which a step's executions are invalid.
    invalid: BTreeMap<Arc<str>, u64>,
}

impl History {
    pub(super) fn new(invalid: BTreeMap<Arc<str>, u64>) -> Self {
        Self { invalid, ..Self::default() }
    }

    pub(super) fn push(&mut self, execution: Arc<Execution>) {
        let at = self.all.len();
        self.versions.entry((execution.step.clone(), execution.syntax)).or_default().push(at);
        self.steps.entry(execution.step.clone()).or_default().push(at);
        self.numbers.insert(execution.seq, at);
        for made in &execution.trace.units {
            self.made.entry(made.unit.key.clone()).or_insert(at);
        }
        self.all.push(execution);
    }

    /// The valid executions of this code in this step, newest first.
    pub(crate) fn of<'a>(
        &'a self,
        step: &Arc<str>,
        syntax: Fingerprint,
        executor: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Execution>> {
        let invalid = self.invalid.get(step).copied();
        self.versions
            .get(&(step.clone(), syntax))
            .into_iter()
            .flatten()
            .rev()
            .take(TRIED)
            .map(|&at| &self.all[at])
            .filter(move |execution| &*execution.executor == executor)
            .filter(move |execution| invalid.is_none_or(|seq| execution.seq > seq))
    }

    pub(crate) fn latest(&self, step: &str) -> Option<&Arc<Execution>> {
        self.steps.get(step)?.last().map(|&at| &self.all[at])
    }

    /// The source that each step had when it last ran.
    pub(crate) fn latest_sources(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        let last = |at: &Vec<usize>| at.last().map(|&at| &self.all[at].source);
        self.steps.iter().filter_map(move |(step, at)| Some((step, last(at)?)))
    }

    /// The step's latest successful execution in such a worker, with any code.
    pub(crate) fn last_good(&self, step: &str, executor: &str) -> Option<&Arc<Execution>> {
        let good = |execution: &&Arc<Execution>| {
            &*execution.executor == executor && execution.ending.is_ok()
        };
        self.steps.get(step)?.iter().rev().map(|&at| &self.all[at]).find(good)
    }

    /// The execution that made a unit.
    pub(crate) fn maker(&self, key: &UnitKey) -> Option<&Arc<Execution>> {
        self.made.get(key).map(|&at| &self.all[at])
    }

    /// The execution with that number; the latest record if there are several.
    pub(super) fn by_seq(&self, seq: u64) -> Option<&Arc<Execution>> {
        self.numbers.get(&seq).map(|&at| &self.all[at])
    }

    /// The newest executions of each step: those that may be tried.
    pub(super) fn newest(&self) -> impl Iterator<Item = &Arc<Execution>> {
        self.steps.values().flat_map(|at| at.iter().rev().take(TRIED)).map(|&at| &self.all[at])
    }

    /// The number of the latest execution.
    pub(crate) fn last_seq(&self) -> u64 {
        self.all.last().map_or(0, |execution| execution.seq)
    }

    pub(super) fn invalid(&self) -> BTreeMap<Arc<str>, u64> {
        self.invalid.clone()
    }

    pub(crate) fn all(&self) -> &[Arc<Execution>] {
        &self.all
    }

    /// Marks all executions of `step` so far as invalid.
    pub(super) fn invalidate(&mut self, step: &Arc<str>) {
        self.invalid.insert(step.clone(), self.last_seq());
    }

    pub(crate) fn is_invalid(&self, execution: &Execution) -> bool {
        self.invalid.get(&execution.step).is_some_and(|&seq| execution.seq <= seq)
    }
}
