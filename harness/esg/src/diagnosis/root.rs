//! What traces show of a failure.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{
    Cause, Diagnosis, Evidence, FailureKind, Fault, Frame, Where, Why, names_read, nearest,
};
use crate::exec::{Ending, Wrote};
use crate::ledger::Ledger;
use crate::program::{Program, Step};
use crate::trace::Execution;

/// How many names of a failing line are looked at.
pub(super) const NAMES: usize = 8;

/// The diagnosis of the first failing step.
pub(super) fn diagnosis(ledger: &Ledger) -> Option<Diagnosis> {
    let program = ledger.program();
    let (step, execution) = program.steps().find_map(|step| {
        let execution = ledger.execution(&step.id)?;
        let fails = !execution.ending.is_ok() && execution.syntax == step.syntax;
        fails.then_some((step, execution))
    })?;
    let bound = Bound::before(program, ledger, &step.id);
    let mut fault = Fault::of(&execution.ending, &step.source);
    fault.facts.globals = bound.names.keys().map(ToString::to_string).collect();
    let kind = FailureKind::of(&execution.ending);
    let failing = place(step, fault.line());
    let raised = raised(program, step, &execution.ending);
    if let Some(Where { line, text, .. }) = &raised {
        let line = line.and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
        fault.frames = vec![Frame { line, text: text.clone(), ..Frame::default() }];
    }
    let mut evidence = values(execution, &failing.text, ledger);
    if kind == FailureKind::MissingName
        && let Some(missing) = &fault.facts.name
    {
        let known = nearest(missing, fault.facts.globals.iter().map(String::as_str));
        if !known.is_empty() {
            let known = known.into_iter().map(str::to_owned).collect();
            evidence.push(Evidence::Near { missing: missing.clone(), known });
        }
    }
    Some(Diagnosis {
        kind,
        root: root(ledger, step, execution, kind, &fault, &bound),
        failing,
        raised,
        ending: execution.ending.clone(),
        evidence,
        affected: affected(ledger, step),
        fault,
    })
}

impl FailureKind {
    /// The kind of an ending.
    #[must_use]
    pub fn of(ending: &Ending) -> Self {
        match ending {
            Ending::Raised { syntax: true, .. } => Self::Syntax,
            Ending::Raised { type_name, .. } => match type_name.as_str() {
                "NameError" | "UnboundLocalError" => Self::MissingName,
                "ImportError" | "ModuleNotFoundError" => Self::MissingImport,
                "AttributeError" => Self::MissingAttribute,
                "KeyError" | "IndexError" => Self::MissingKey,
                "TypeError" => Self::WrongType,
                "AssertionError" => Self::Assertion,
                "MemoryError" => Self::Limit,
                _ => Self::Raised,
            },
            Ending::Timeout { .. } | Ending::Stalled { .. } | Ending::OutOfMemory => Self::Limit,
            _ => Self::Worker,
        }
    }
}

/// The line that raised, if it is in a function of another step.
fn raised(program: &Program, failing: &Step, ending: &Ending) -> Option<Where> {
    let Ending::Raised { frames, .. } = ending else { return None };
    let frame = frames.last().filter(|frame| *frame.step != *failing.id)?;
    Some(place(program.step(&frame.step).ok()?, frame.line))
}

/// A line of a step.
pub(super) fn place(step: &Step, line: usize) -> Where {
    Where {
        step: step.id.clone(),
        version: Some(step.version),
        line: (line > 0).then_some(line),
        text: match line {
            0 => String::new(),
            line => step.source.lines().nth(line - 1).unwrap_or_default().to_owned(),
        },
    }
}

/// The line of a step that binds a name, or says it.
pub(super) fn line_of(step: &Step, name: &str) -> usize {
    let says = |line: &str| words(line).any(|word| word == name);
    let binds = |line: &str| {
        line.split_once('=').is_some_and(|(left, right)| says(left) && !right.starts_with('='))
    };
    let line = |test: &dyn Fn(&str) -> bool| step.source.lines().position(test).map(|at| at + 1);
    line(&binds).or_else(|| line(&says)).unwrap_or(0)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|char: char| !char.is_alphanumeric() && char != '_').filter(|word| !word.is_empty())
}

/// The names that are bound before a step runs, and who deleted others.
#[derive(Default)]
struct Bound {
    names: BTreeMap<Arc<str>, Arc<str>>,
    deleted: BTreeMap<Arc<str>, Arc<str>>,
}

impl Bound {
    fn before(program: &Program, ledger: &Ledger, step: &str) -> Self {
        let mut bound = Self::default();
        bound.names.extend(program.inputs().map(|input| (input.name.clone(), input.name.clone())));
        let before = program.steps().take_while(|one| &*one.id != step);
        for execution in before.filter_map(|one| ledger.execution(&one.id)) {
            for (entity, wrote) in &execution.trace.wrote {
                let Some(name) = entity.as_name() else { continue };
                let name: Arc<str> = name.into();
                if *wrote == Wrote::Deleted {
                    bound.names.remove(&name);
                    bound.deleted.insert(name, execution.step.clone());
                } else {
                    bound.deleted.remove(&name);
                    bound.names.insert(name, execution.step.clone());
                }
            }
        }
        bound
    }
}

/// The names that the failing line says and the execution read, with the executions that wrote them.
fn values(execution: &Execution, line: &str, ledger: &Ledger) -> Vec<Evidence> {
    let said: BTreeSet<&str> = words(line).collect();
    let read = names_read(execution).filter(|(name, by)| said.contains(name) && by.is_some());
    let value = |(name, by): (&str, Option<&Arc<str>>)| Evidence::Value {
        name: name.to_owned(),
        by: by.cloned(),
        execution: by.and_then(|by| ledger.execution(by)).map(|producer| producer.seq),
        type_name: None,
        repr: None,
    };
    read.take(NAMES).map(value).collect()
}

fn root(
    ledger: &Ledger,
    step: &Step,
    execution: &Execution,
    kind: FailureKind,
    fault: &Fault,
    bound: &Bound,
) -> Option<Cause> {
    let program = ledger.program();
    if let (FailureKind::MissingName, Some(name)) = (kind, &fault.facts.name) {
        return missing_name(ledger, step, name, bound);
    }
    // The failure is in a function of another step.
    if let Ending::Raised { frames, .. } = &execution.ending
        && let Some(frame) = frames.last().filter(|frame| *frame.step != *step.id)
    {
        let other = program.step(&frame.step).ok()?;
        let why = Why::Defines { function: frame.function.clone() };
        let execution = ledger.execution(&other.id).map(|execution| execution.seq);
        return Some(Cause { at: place(other, frame.line), execution, why });
    }
    None
}

/// Which step should have bound a name.
fn missing_name(ledger: &Ledger, step: &Step, name: &str, bound: &Bound) -> Option<Cause> {
    let program = ledger.program();
    let cause = |step: &Step, execution: Option<u64>, why: Why| Cause {
        at: place(step, line_of(step, name)),
        execution,
        why,
    };
    let name_of = || name.to_owned();
    if let Some(deleter) = bound.deleted.get(name) {
        let execution = ledger.execution(deleter).map(|execution| execution.seq);
        let deleter = program.step(deleter).ok()?;
        return Some(cause(deleter, execution, Why::Deleted { name: name_of() }));
    }
    let later = program.steps().skip_while(|one| one.id != step.id).skip(1);
    if let Some(later) = later.into_iter().find(|one| one.scan.writes.contains(name)) {
        return Some(cause(later, None, Why::BindsLater { name: name_of() }));
    }
    // The newest execution that bound it, of a step whose code has changed since.
    let wrote = |execution: &&Arc<Execution>| {
        let mut wrote = execution.trace.wrote.iter();
        wrote.any(|(entity, how)| entity.as_name() == Some(name) && *how == Wrote::Bound)
    };
    let before = ledger.executions().iter().rev().find(wrote)?;
    let now = program.step(&before.step).ok().filter(|now| now.syntax != before.syntax)?;
    let versions = program.versions().iter().rev();
    let version = versions
        .filter(|version| version.step == before.step && version.syntax == before.syntax)
        .map(|version| version.id)
        .next()?;
    let why = Why::BoundBefore { name: name_of(), version };
    Some(Cause { at: place(now, 0), execution: Some(before.seq), why })
}

/// The later steps that read what the failing step should have written, and what those write.
fn affected(ledger: &Ledger, failing: &Step) -> Vec<Arc<str>> {
    let mut names: BTreeSet<String> = failing.scan.writes.iter().map(str::to_owned).collect();
    let mut affected = Vec::new();
    for step in ledger.program().steps().skip_while(|step| step.id != failing.id).skip(1) {
        let scan = &step.scan;
        let reads = |name: &String| scan.reads.contains(name) || scan.deferred_reads.contains(name);
        let read = || ledger.execution(&step.id).map(|execution| names_read(execution));
        let reads_any = names.iter().any(reads)
            || read().is_some_and(|mut read| read.any(|(name, _)| names.contains(name)));
        if reads_any {
            names.extend(scan.writes.iter().map(str::to_owned));
            affected.push(step.id.clone());
        }
    }
    affected
}
