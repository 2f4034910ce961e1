//! Why a step fails: the failing line, the step that is the root cause, and evidence.
//!
//! [`Diagnosis::of`] reads the traces in a ledger. [`CodeGraph::diagnose`](crate::CodeGraph::diagnose) adds what only a worker
//! knows: the values that the step saw, and the facts about its exception.
//!
//! The root cause is the step that made the wrong value or should have bound the missing name. It is
//! found from the execution of the failing step: each name that it read was written by one execution,
//! which read others in turn. An execution that only passes on what it read is not the root.
mod fault;
mod live;
mod near;
mod root;
mod show;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::exec::Ending;
use crate::ledger::Ledger;
use crate::program::VersionId;
use crate::trace::Execution;

pub use fault::{Callee, Facts, Fault, Frame, Operand, Syntax};
pub(crate) use near::nearest;

/// Python that defines `describe(error, file, source)`: the facts about an exception, as
/// [`Fault`] reads them. For programs that run whole scripts with an interpreter of their own.
pub const FACTS: &str = include_str!("facts.py");

/// Why a step fails, as plain data. Its `Display` is for people and models.
///
/// ```
/// use harness_esg::{Blobs, CPython, CodeGraph, Program, Trust};
///
/// let program = Program::from_script("
/// ## %% load
/// rows = [3, 1]
/// ## %% total
/// total = sum(row)
/// ## %% show
/// print(total)
/// ")?;
/// let python = CPython::find().trust(Trust::Mine).start()?;
/// let mut graph = CodeGraph::new(program, python, Blobs::memory());
/// graph.replay()?;
///
/// let Some(diagnosis) = graph.diagnose()? else { panic!("it fails") };
/// assert_eq!(&*diagnosis.failing.step, "total");
/// assert_eq!(diagnosis.near()[0], "rows");
/// assert_eq!(diagnosis.affected, ["show".into()]);
/// println!("{diagnosis}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The kind of failure.
    pub kind: FailureKind,
    /// The first step that fails, and the line of it that the failure passed through.
    pub failing: Where,
    /// The line that raised the exception, if it is in a function that another step defines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raised: Option<Where>,
    /// How it ended.
    pub ending: Ending,
    /// Where the wrong value or the missing name comes from, if the traces show it.
    pub root: Option<Cause>,
    /// What the failing step saw.
    pub evidence: Vec<Evidence>,
    /// The steps that fail or cannot be trusted because of it: those that read what it should have
    /// written, directly and indirectly.
    pub affected: Vec<Arc<str>>,
    /// The facts about the exception, with the lines of the step that [raised](Self::raised_at) it.
    pub fault: Fault,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// The source does not compile.
    Syntax,
    /// A name is not bound.
    MissingName,
    /// A module, or a name in it, does not exist.
    MissingImport,
    /// An object has no such attribute.
    MissingAttribute,
    /// A mapping has no such key, or a sequence no such index.
    MissingKey,
    /// Something of the wrong type, or a call with the wrong arguments.
    WrongType,
    /// An assertion does not hold.
    Assertion,
    /// Another exception.
    Raised,
    /// It exceeded a limit of time or memory.
    Limit,
    /// The worker refused, died or broke down.
    Worker,
}

/// A step, and a line of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Where {
    /// The step.
    pub step: Arc<str>,
    /// Its version.
    pub version: Option<VersionId>,
    /// The line, from 1, if it is known.
    pub line: Option<usize>,
    /// The text of that line.
    pub text: String,
}

/// The root cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cause {
    /// The step to look at.
    pub at: Where,
    /// The number of the execution that made the value: a step may have run again since.
    pub execution: Option<u64>,
    /// What it did.
    pub why: Why,
}

/// What makes a step the root cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Why {
    /// It wrote the wrong value.
    Wrote {
        /// The name.
        name: String,
    },
    /// It deleted the name.
    Deleted {
        /// The name.
        name: String,
    },
    /// An earlier version of it bound the name.
    BoundBefore {
        /// The name.
        name: String,
        /// That version.
        version: VersionId,
    },
    /// It binds the name, and comes after the failing step.
    BindsLater {
        /// The name.
        name: String,
    },
    /// The failure is in a function that it defines.
    Defines {
        /// The function.
        function: String,
    },
}

/// What a failing step saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Evidence {
    /// A name that the failing line reads.
    Value {
        /// The name.
        name: String,
        /// The step that wrote it last.
        by: Option<Arc<str>>,
        /// The number of the execution that did.
        execution: Option<u64>,
        /// Its type, if it was looked at.
        type_name: Option<String>,
        /// Its `repr`, bounded.
        repr: Option<String>,
    },
    /// What exists instead of the missing name, attribute, key or argument, the most similar first.
    Near {
        /// What is missing.
        missing: String,
        /// What exists.
        known: Vec<String>,
    },
}

impl Diagnosis {
    /// The diagnosis of the first failing step after the last replay, as far as traces show it. `None`
    /// if no step fails.
    #[must_use]
    pub fn of(ledger: &Ledger) -> Option<Self> {
        root::diagnosis(ledger)
    }

    /// The error in one line: `NameError: name 'row' is not defined (line 1)`.
    #[must_use]
    pub fn error(&self) -> String {
        let error = self.ending.to_string();
        error.lines().next().unwrap_or_default().to_owned()
    }

    /// The line that raised the exception: of the failing step, or of the one that defines the function.
    #[must_use]
    pub fn raised_at(&self) -> &Where {
        self.raised.as_ref().unwrap_or(&self.failing)
    }

    /// What exists instead of what is missing, the most similar first.
    #[must_use]
    pub fn near(&self) -> Vec<&str> {
        let near = self.evidence.iter().filter_map(|evidence| match evidence {
            Evidence::Near { known, .. } => Some(known.iter().map(String::as_str)),
            Evidence::Value { .. } => None,
        });
        near.flatten().collect()
    }

    /// The steps to look at for a repair: the failing one, the root cause, and those that wrote what
    /// the failing line reads. Without duplicates.
    #[must_use]
    pub fn involved(&self) -> Vec<Arc<str>> {
        let mut steps = vec![self.failing.step.clone()];
        let written = self.evidence.iter().filter_map(|evidence| match evidence {
            Evidence::Value { by, .. } => by.clone(),
            Evidence::Near { .. } => None,
        });
        let raised = self.raised.iter().map(|at| at.step.clone());
        let root = self.root.iter().map(|cause| cause.at.step.clone());
        for step in raised.chain(root).chain(written) {
            if !steps.contains(&step) {
                steps.push(step);
            }
        }
        steps
    }
}

/// What an execution read by name, and the step that had written it.
fn names_read(execution: &Execution) -> impl Iterator<Item = (&str, Option<&Arc<str>>)> {
    let trace = &execution.trace;
    let reads = trace.reads.iter().chain(&trace.altered);
    reads.filter_map(|(entity, read)| Some((entity.as_name()?, read.by.as_ref())))
}
