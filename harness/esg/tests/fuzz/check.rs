//! Runs a case: after each edit the state must equal that of a full run.
use std::collections::{BTreeMap, BTreeSet};

use harness_esg::{Blobs, CodeGraph, EsgError, Executor, Program, Reason, Report};

use crate::case::Case;

/// The expectations of a case.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    /// It may contain untracked operations.
    pub(crate) untracked: bool,
    /// Without the sweep at the end: traces alone have to be right.
    pub(crate) no_sweep: bool,
}

/// Statistics.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) programs: usize,
    pub(crate) edits: usize,
    pub(crate) ran: usize,
    pub(crate) of: usize,
    pub(crate) rebuilt: usize,
    pub(crate) widened: usize,
    pub(crate) failed: usize,
    pub(crate) untracked: BTreeMap<String, usize>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Self) {
        self.programs += other.programs;
        self.edits += other.edits;
        self.ran += other.ran;
        self.of += other.of;
        self.rebuilt += other.rebuilt;
        self.widened += other.widened;
        self.failed += other.failed;
        for (what, times) in other.untracked {
            *self.untracked.entry(what).or_default() += times;
        }
    }
}

/// The fault of the case, if any, and its statistics.
pub(crate) fn check(
    case: &Case,
    executor: impl Executor + 'static,
    rules: Rules,
) -> (Option<String>, Tally) {
    let mut tally = Tally { programs: 1, ..Tally::default() };
    let wrong = match run(case, executor, rules, &mut tally) {
        Ok(wrong) => wrong,
        Err(error) => Some(format!("an error: {error}")),
    };
    (wrong, tally)
}

fn run(
    case: &Case,
    executor: impl Executor + 'static,
    rules: Rules,
    tally: &mut Tally,
) -> Result<Option<String>, EsgError> {
    let mut program = Program::new();
    for (id, source) in &case.steps {
        program.push(id, source)?;
    }
    let mut graph = CodeGraph::new(program, executor, Blobs::memory()).sweep(!rules.no_sweep);
    let report = graph.replay()?;
    if let Some(wrong) = untracked(&report, rules, tally) {
        return Ok(Some(format!("at first: {wrong}")));
    }
    for (at, edit) in case.edits.iter().enumerate() {
        edit.apply(&mut graph)?;
        let plan = graph.plan();
        let planned: BTreeSet<&str> = plan.steps().map(|(step, _)| step).collect();
        let report = graph.replay()?;
        let after = |wrong: String| Ok(Some(format!("after edit {at}: {wrong}\n{report}")));
        tally.edits += 1;
        tally.of += graph.program().len();
        tally.ran += report.executed().count();
        tally.rebuilt += report.rebuilt.len();
        tally.widened += report.widened;
        tally.failed += report.failed.len();
        if let Some(wrong) = untracked(&report, rules, tally) {
            return after(wrong);
        }
        // What is untracked runs everything behind it.
        let tracked = report.untracked.is_empty()
            && report.ran.iter().all(|(_, reason)| *reason != Reason::Untracked);
        let unplanned = report.executed().find(|step| !planned.contains(&***step));
        if let Some(step) = unplanned.filter(|_| tracked) {
            return after(format!("{step} ran and was not planned: {plan}"));
        }
        let verdict = graph.verify()?;
        if !verdict.same {
            return after(verdict.to_string());
        }
        let again = graph.replay()?;
        if again.executed().next().is_some() && report.untracked.is_empty() {
            return after(format!("a second replay: {again}"));
        }
    }
    Ok(None)
}

fn untracked(report: &Report, rules: Rules, tally: &mut Tally) -> Option<String> {
    for (_, one) in &report.untracked {
        *tally.untracked.entry(one.what.clone()).or_default() += 1;
    }
    let (step, what) = report.untracked.first()?;
    if !rules.untracked {
        return Some(format!("{step} is said to be untracked: {what}"));
    }
    None
}
