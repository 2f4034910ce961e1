//! Several steps as one source, for mistakes that are not where a program fails.
use std::sync::Arc;

use crate::diagnosis::{Diagnosis, Fault};
use crate::program::{Program, Step};

use super::judge;
use super::rules::{Proposal, Rule, propose};

/// A step with the source that a proposal gives it.
pub(super) struct Changed<'a> {
    pub(super) step: &'a Step,
    pub(super) source: String,
    pub(super) proposal: Proposal,
}

/// The proposals for the step that raised the exception, and then those that need the steps before it:
/// a method may lack `self` in a step that does not fail. None hides the failure.
pub(super) fn proposals<'a>(diagnosis: &Diagnosis, program: &'a Program) -> Vec<Changed<'a>> {
    let scene = &diagnosis.raised_at().step;
    let Ok(step) = program.step(scene) else { return Vec::new() };
    let fault = seen_from(&diagnosis.fault, |file| (step_of(file) == Some(scene)).then_some(0), 0);
    let alone = acceptable(&step.source, &fault).map(|proposal| {
        let source = proposal.fixed.clone();
        Changed { step, source, proposal }
    });
    let mut found: Vec<_> = alone.collect();
    // Where the program has imports, another one belongs beside them.
    let is_import = |one: &Changed<'_>| one.proposal.rule == Rule::MissingImport;
    // A source that does not parse is not read with others.
    if step.scan.errors.is_empty() {
        let whole = Whole::until(&diagnosis.failing.step, program);
        for one in whole.proposals(&diagnosis.fault, scene) {
            if found.iter().all(|known| known.step.id != one.step.id || known.source != one.source)
            {
                let elsewhere =
                    is_import(&one) && one.step.id != step.id && is_of_imports(one.step);
                let first = found.iter().position(is_import).filter(|_| elsewhere);
                found.insert(first.unwrap_or(found.len()), one);
            }
        }
    }
    found
}

/// Whether a step has nothing but imports, so that another one makes nothing else run again.
fn is_of_imports(step: &Step) -> bool {
    let is_import = |line: &str| {
        let starts = ["import ", "from ", "#", " ", "\t", ")"];
        starts.iter().any(|start| line.starts_with(start)) || line.trim().is_empty()
    };
    !step.scan.imports.is_empty() && step.source.lines().all(is_import)
}

/// The proposals that do not hide the failure.
fn acceptable(source: &str, fault: &Fault) -> impl Iterator<Item = Proposal> {
    let proposals = propose(source, fault).into_iter();
    proposals.filter(|proposal| judge(source, &proposal.fixed, fault).is_ok())
}

/// The fault with its lines moved down, and the line of what was called moved as its file says.
fn seen_from(fault: &Fault, callee: impl Fn(&str) -> Option<u32>, by: u32) -> Fault {
    let mut fault = fault.clone();
    for frame in &mut fault.frames {
        frame.line += by;
        frame.end_line = frame.end_line.map(|line| line + by);
    }
    for operand in &mut fault.facts.operands {
        operand.line += by;
        operand.end_line += by;
    }
    if let Some(called) = &mut fault.facts.callee {
        called.line = called.line.zip(callee(&called.file)).map(|(line, by)| line + by);
    }
    fault
}

/// The step that is compiled as a file of this name.
fn step_of(file: &str) -> Option<&str> {
    file.strip_prefix("<step:")?.strip_suffix('>')
}

/// Steps one after the other.
struct Whole<'a> {
    source: String,
    /// Each step, its first line from 0, and the number of its lines.
    steps: Vec<(&'a Step, usize, usize)>,
}

impl<'a> Whole<'a> {
    /// The steps up to this one.
    fn until(last: &str, program: &'a Program) -> Self {
        let mut whole = Self { source: String::new(), steps: Vec::new() };
        let mut line = 0;
        for step in program.steps() {
            if step.scan.errors.is_empty() {
                whole.source.push_str(&step.source);
                if !step.source.ends_with('\n') {
                    whole.source.push('\n');
                }
                let lines = step.source.split_inclusive('\n').count().max(1);
                whole.steps.push((step, line, lines));
                line += lines;
            }
            if *step.id == *last {
                break;
            }
        }
        whole
    }

    fn first_line(&self, id: &str) -> Option<u32> {
        let found = self.steps.iter().find(|(step, ..)| *step.id == *id);
        found.and_then(|(_, line, _)| u32::try_from(*line).ok())
    }

    fn proposals(&self, fault: &Fault, scene: &Arc<str>) -> Vec<Changed<'a>> {
        let Some(by) = self.first_line(scene) else { return Vec::new() };
        let fault = seen_from(fault, |file| self.first_line(step_of(file)?), by);
        acceptable(&self.source, &fault).filter_map(|proposal| self.changed(proposal)).collect()
    }

    /// The one step that a proposal changes.
    fn changed(&self, proposal: Proposal) -> Option<Changed<'a>> {
        let (from, old) = (proposal.edit.line - 1, proposal.edit.old.len());
        // What is inserted between two steps belongs to the one after it, but for an import.
        let least = usize::from(proposal.rule != Rule::MissingImport);
        let inside = |(_, first, lines): &&(&Step, usize, usize)| {
            *first <= from && from + old.max(least) <= first + lines
        };
        let (step, first, lines) = *self.steps.iter().find(inside)?;
        let lines = lines + proposal.edit.new.len() - old;
        let mut source: String =
            proposal.fixed.split_inclusive('\n').skip(first).take(lines).collect();
        if !step.source.ends_with('\n') && source.ends_with('\n') {
            source.pop();
        }
        Some(Changed { step, source, proposal })
    }
}
