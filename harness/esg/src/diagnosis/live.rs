//! What a worker adds to a diagnosis: facts about the exception, and values.
use std::sync::Arc;

use serde_json::Value as Json;

use super::root::{line_of, place};
use super::{Cause, Diagnosis, Evidence, FACTS, FailureKind, Fault, Why, names_read, nearest};
use crate::error::EsgError;
use crate::exec::Value;
use crate::graph::CodeGraph;
use crate::trace::Execution;

/// The largest report of facts, in bytes.
const FACTS_BYTES: usize = 200_000;

/// The longest `repr` in a diagnosis.
const REPR: usize = 200;

/// How many executions a wrong value is followed through.
const HOPS: usize = 32;

/// How deep in a value a key or `None` is looked for, and in how many elements of each list.
const DEPTH: usize = 3;
const ELEMENTS: usize = 1000;

impl CodeGraph {
    /// Why the first failing step after the last replay fails. `None` if no step does.
    ///
    /// The step runs once more, on what it saw, to look at the exception; nothing of that run is kept
    /// but what it did outside of everything tracked. What the worker says of a program is evidence,
    /// not proof: the program shares its process.
    ///
    /// # Errors
    /// If the worker fails.
    pub fn diagnose(&mut self) -> Result<Option<Diagnosis>, EsgError> {
        let Some(mut diagnosis) = Diagnosis::of(self.ledger()) else { return Ok(None) };
        if matches!(diagnosis.kind, FailureKind::Syntax | FailureKind::Limit | FailureKind::Worker)
        {
            return Ok(Some(diagnosis));
        }
        if let Some(fault) = self.facts(&diagnosis)? {
            diagnosis.fault = fault;
        }
        near(&mut diagnosis);
        let run = self.ledger().run();
        let executions: Vec<_> = self.ledger().replayed(run).unwrap_or_default().to_vec();
        let at = executions.iter().position(|one| one.step == diagnosis.failing.step);
        let Some(at) = at.filter(|at| *at > 0) else { return Ok(Some(diagnosis)) };
        let seen = Walk { run, executions };
        let sign = Sign::of(&diagnosis);
        let mut wrong = None;
        for evidence in &mut diagnosis.evidence {
            let Evidence::Value { name, type_name, repr, .. } = evidence else { continue };
            let Some(value) = self.seen(&seen, at, name)? else { continue };
            if wrong.is_none() && sign.as_ref().is_some_and(|sign| sign.is_in(&value)) {
                wrong = Some(name.clone());
            }
            *type_name = Some(value.type_name);
            *repr = Some(value.repr[..value.repr.floor_char_boundary(REPR)].to_owned());
        }
        if diagnosis.root.is_none() {
            diagnosis.root = match (wrong, sign) {
                (Some(name), Some(sign)) => self.origin(&seen, at, name, &sign)?,
                _ => None,
            };
        }
        if diagnosis.root.is_none() && diagnosis.kind == FailureKind::Assertion {
            diagnosis.root = self.only_writer(&diagnosis);
        }
        Ok(Some(diagnosis))
    }

    /// The facts about the exception, if the step fails in the same way again.
    fn facts(&mut self, diagnosis: &Diagnosis) -> Result<Option<Fault>, EsgError> {
        let step = diagnosis.failing.step.clone();
        let file = |id: &str| {
            let source = &self.program().step(id).ok()?.source;
            Some(Json::from([format!("<step:{id}>"), source.to_string()].as_slice()).to_string())
        };
        let Some((own, scene)) = file(&step).zip(file(&diagnosis.raised_at().step)) else {
            return Ok(None);
        };
        let mark = format!("\u{1}facts {}\u{1}", uuid::Uuid::new_v4());
        let text = |text: &str| Json::from(text).to_string();
        let code = [FACTS, include_str!("probe.py")].concat();
        // In a namespace of its own: the names of the program stay as they are.
        let probe = format!(
            "exec({} + 'probe(program, step, scene, mark, {FACTS_BYTES})', {{'program': globals(), \
             'step': {own}, 'scene': {scene}, 'mark': {}, '__name__': 'facts'}})",
            text(&code),
            text(&mark),
        );
        let Some(output) = self.probe(&step, &probe)? else { return Ok(None) };
        let output = String::from_utf8_lossy(&output.bytes).into_owned();
        let report = output.split(mark.as_str()).nth(1);
        let fault: Option<Fault> = report.and_then(|report| serde_json::from_str(report).ok());
        Ok(fault.filter(|fault| fault.kind == diagnosis.fault.kind))
    }

    /// The value that the execution at `at` saw.
    fn seen(&mut self, walk: &Walk, at: usize, name: &str) -> Result<Option<Value>, EsgError> {
        let Some(before) = at.checked_sub(1) else { return Ok(None) };
        match self.value_at(walk.run, before, name) {
            Ok(value) => Ok(Some(value)),
            // It cannot be shown: the diagnosis says less.
            Err(error) if error.is_about_value() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Follows a wrong value to the execution that made it: the first one none of whose own inputs
    /// has what is wrong.
    fn origin(
        &mut self,
        walk: &Walk,
        mut at: usize,
        mut name: String,
        sign: &Sign,
    ) -> Result<Option<Cause>, EsgError> {
        for _ in 0..HOPS {
            let reader = walk.executions[at].clone();
            let by = names_read(&reader).find(|(read, _)| *read == name).and_then(|(_, by)| by);
            let Some(producer) = by.and_then(|by| walk.index(by, at)) else { return Ok(None) };
            let execution = walk.executions[producer].clone();
            let mut inputs: Vec<String> = names_read(&execution)
                .filter(|(_, by)| by.is_some())
                .map(|(name, _)| name.to_owned())
                .collect();
            inputs.truncate(super::root::NAMES);
            let mut further = None;
            for input in inputs {
                if self.seen(walk, producer, &input)?.is_some_and(|value| sign.is_in(&value)) {
                    further = Some(input);
                    break;
                }
            }
            match further {
                Some(input) => (at, name) = (producer, input),
                None => return Ok(self.wrote(&execution, name)),
            }
        }
        Ok(None)
    }

    fn wrote(&self, execution: &Execution, name: String) -> Option<Cause> {
        let step = self.program().step(&execution.step).ok()?;
        let at = place(step, line_of(step, &name));
        Some(Cause { at, execution: Some(execution.seq), why: Why::Wrote { name } })
    }

    /// The step that wrote everything that a failing assertion reads, if it was one.
    fn only_writer(&self, diagnosis: &Diagnosis) -> Option<Cause> {
        let mut written = diagnosis.evidence.iter().filter_map(|evidence| match evidence {
            Evidence::Value { name, by: Some(by), .. } => Some((name, by)),
            _ => None,
        });
        let (name, by) = written.next()?;
        let execution = self.execution(by)?;
        written.all(|(_, other)| other == by).then(|| self.wrote(execution, name.clone())).flatten()
    }
}

/// The executions of the last replay.
struct Walk {
    run: u64,
    executions: Vec<Arc<Execution>>,
}

impl Walk {
    /// The execution of a step before the one at `at`.
    fn index(&self, step: &str, at: usize) -> Option<usize> {
        self.executions[..at].iter().position(|execution| &*execution.step == step)
    }
}

/// What is wrong with a value, as the exception says.
enum Sign {
    /// It has no such key.
    NoKey(String),
    /// It is `None`, or contains it.
    HasNone,
    /// It is of this type.
    Type(String),
}

impl Sign {
    fn of(diagnosis: &Diagnosis) -> Option<Self> {
        let fault = &diagnosis.fault;
        match diagnosis.kind {
            FailureKind::MissingKey => fault.facts.name.clone().map(Self::NoKey),
            _ if fault.message.contains("NoneType") => Some(Self::HasNone),
            FailureKind::MissingAttribute => fault.facts.owner.clone().map(Self::Type),
            _ => None,
        }
    }

    fn is_in(&self, value: &Value) -> bool {
        match (self, &value.json) {
            (Self::Type(name), _) => value.type_name == *name,
            (Self::HasNone, None) => value.type_name == "NoneType",
            (Self::HasNone, Some(json)) => any(json, DEPTH, &|json| json.is_null()),
            (Self::NoKey(_), None) => false,
            (Self::NoKey(key), Some(json)) => {
                any(json, DEPTH, &|json| {
                    json.as_object().is_some_and(|map| !map.is_empty() && !map.contains_key(key))
                }) && !any(json, DEPTH, &|json| json.get(key).is_some())
            }
        }
    }
}

/// Whether a value, or a part of it, passes.
fn any(json: &Json, depth: usize, test: &dyn Fn(&Json) -> bool) -> bool {
    test(json)
        || depth > 0
            && match json {
                Json::Array(items) => {
                    items.iter().take(ELEMENTS).any(|item| any(item, depth - 1, test))
                }
                Json::Object(map) => {
                    map.values().take(ELEMENTS).any(|value| any(value, depth - 1, test))
                }
                _ => false,
            }
}

/// What exists instead of the missing attribute, key or argument.
fn near(diagnosis: &mut Diagnosis) {
    let facts = &diagnosis.fault.facts;
    let Some(missing) = &facts.name else { return };
    let known: Vec<&str> = match diagnosis.kind {
        FailureKind::MissingName => facts.locals.iter().chain(&facts.builtins).collect(),
        FailureKind::MissingAttribute => facts.attributes.iter().collect(),
        FailureKind::MissingImport => facts.attributes.iter().chain(&facts.stdlib).collect(),
        FailureKind::MissingKey => facts.keys.iter().collect(),
        FailureKind::WrongType => {
            facts.callee.iter().flat_map(|callee| &callee.parameters).collect()
        }
        _ => Vec::new(),
    }
    .into_iter()
    .map(String::as_str)
    .collect();
    let mut found: Vec<String> = nearest(missing, known).into_iter().map(str::to_owned).collect();
    if diagnosis.kind == FailureKind::MissingKey && found.is_empty() {
        found = facts.keys.iter().take(8).cloned().collect();
    }
    found.retain(|name| !diagnosis.near().contains(&name.as_str()));
    if !found.is_empty() {
        let missing = missing.clone();
        diagnosis.evidence.push(Evidence::Near { missing, known: found });
    }
}
