//! Programs of code steps that a state holds: their execution state graph, without a worker.

mod drawing;
mod html;
mod markdown;
mod roll_back;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use harness_esg::{
    Change, CodeGraph, Credit, Diagnosis, Edge, EdgeKind, Execution, Ledger, Operation, Plan,
    Provenance, Record, Version, VersionId, VersionKind,
};
use serde::Deserialize as _;
use serde_json::Value;

use super::DiffLine;
use super::lines::between;

pub use html::programs_html;
pub(super) use html::sections;
pub(super) use markdown::write;
pub(super) use words::{Replays, effect};

/// The most edges that are kept.
const MAX_EDGES: usize = 400;
/// The most versions that are kept: the last ones.
const MAX_VERSIONS: usize = 200;

/// A program of code steps, as a field of a state holds it: the execution state graph, as far as it is
/// recorded. No worker and no value is needed for it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProgramReport {
    /// The field.
    pub field: String,
    /// The number of the last replay; `None` if there was none.
    pub replay: Option<u64>,
    /// The names of its inputs, with their values as JSON.
    pub inputs: Vec<(Arc<str>, Arc<str>)>,
    /// The steps, in order.
    pub steps: Vec<CodeStep>,
    /// Which step needs which, by reader in the order of the program.
    pub edges: Vec<Edge>,
    /// How many edges are left out.
    pub more_edges: usize,
    /// The versions of its steps and inputs, oldest first.
    pub versions: Vec<CodeVersion>,
    /// How many earlier versions are left out.
    pub earlier_versions: usize,
    /// The rollbacks, oldest first.
    pub rollbacks: Vec<(VersionId, Provenance)>,
    /// Why it fails, as a step of the loop has found; [`outdated`](Self::outdated) says whether it still does.
    pub diagnosis: Option<Diagnosis>,
    /// What a person decided about it, as the state has it.
    pub reviewed: Option<Value>,
    ledger: Ledger,
}

/// A step of a program.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CodeStep {
    /// Its id.
    pub id: Arc<str>,
    /// Its current version.
    pub version: VersionId,
    /// Its source.
    pub source: Arc<str>,
    /// Where it comes from.
    pub provenance: Provenance,
    /// What the next replay finds.
    pub status: CodeStatus,
    /// Why it would run, or how it failed.
    pub why: Option<String>,
    /// The execution that represents it: since the last replay, or, if an edit has brought back what ran
    /// before, in the next one.
    pub execution: Option<Arc<Execution>>,
}

/// What became of a code step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodeStatus {
    /// It never ran.
    New,
    /// It ran in the last replay.
    Ran,
    /// An earlier execution of it was kept in the last replay.
    Kept,
    /// Its execution failed, and it would not run again as it is.
    Failed,
    /// It would run again, or may.
    Stale,
}

/// A version of a step or an input.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CodeVersion {
    /// The version.
    pub version: Version,
    /// Whether it is the present one of its step or input.
    pub current: bool,
    /// What it changed; empty for a first version.
    pub lines: Vec<DiffLine>,
    /// What it fixed and broke, if it is a patch that has run.
    pub credit: Option<Credit>,
}

impl CodeStatus {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "not run",
            Self::Ran => "ran",
            Self::Kept => "kept",
            Self::Failed => "failed",
            Self::Stale => "stale",
        }
    }

    /// The name of its looks.
    fn class(self) -> &'static str {
        match self {
            Self::New => "new",
            other => other.name(),
        }
    }
}

/// The programs of code steps among the fields of a state. A field that looks like one and cannot be read
/// is none.
///
/// ```
/// use harness::inspect::report::{CodeStatus, programs};
/// use serde_json::json;
///
/// let added = json!({"edited": {"change": {"added": {"step": "load", "source": "rows = [3, 1]"}}}});
/// let found = programs(&json!({"code": {"records": [added]}, "task": "add"}));
/// assert_eq!((found.len(), &*found[0].field), (1, "code"));
/// assert_eq!(found[0].steps[0].status, CodeStatus::New);
/// ```
#[must_use]
pub fn programs(state: &Value) -> Vec<ProgramReport> {
    let fields = state.as_object().into_iter().flatten();
    fields.filter_map(|(name, value)| ProgramReport::of(name, value)).collect()
}

/// Whether it looks like a record, before all of them are decoded.
fn is_record(value: &Value) -> bool {
    let one = value.as_object().filter(|record| record.len() == 1);
    let name = one.and_then(|record| record.keys().next());
    name.is_some_and(|name| {
        matches!(&**name, "edited" | "ran" | "invalid" | "settled" | "snapshot")
    })
}

/// The ledger of a field, and the number of the last replay.
fn ledger_of(field: &Value) -> Option<(Ledger, Option<u64>)> {
    let records = field.get("records").filter(|records| records.get(0).is_some_and(is_record))?;
    let records: Vec<Record> = Vec::deserialize(records).ok()?;
    let last = records.iter().filter_map(|record| match record {
        Record::Settled { run, .. } => Some(*run),
        Record::Snapshot(snapshot) => snapshot.runs.keys().next_back().copied(),
        _ => None,
    });
    let last = last.max();
    Some((Ledger::fold(&records).ok()?, last))
}

impl ProgramReport {
    fn of(field: &str, value: &Value) -> Option<Self> {
        let (ledger, replay) = ledger_of(value)?;
        let diagnosis = value.get("diagnosis").and_then(|it| Diagnosis::deserialize(it).ok());
        let reviewed = value.get("reviewed").filter(|it| !it.is_null()).cloned();
        let graph = CodeGraph::recorded(ledger.clone());
        let program = ledger.program();
        let plan = graph.plan();
        let stale = stale(&plan);
        let holds: BTreeMap<u64, &Arc<Execution>> =
            ledger.executions().iter().map(|execution| (execution.seq, execution)).collect();
        let holds: BTreeMap<&str, &Arc<Execution>> =
            plan.kept().filter_map(|(step, seq)| Some((step, *holds.get(&seq)?))).collect();
        let steps = program.steps().map(|step| {
            let (last, holds) = (ledger.execution(&step.id), holds.get(&*step.id).copied());
            let (status, why) = status(stale.get(&step.id), last, holds, replay);
            let execution = holds.or(last).cloned();
            let version = program.version(step.version);
            CodeStep {
                id: step.id.clone(),
                version: step.version,
                source: step.source.clone(),
                provenance: version.map(|it| it.provenance.clone()).unwrap_or_default(),
                status,
                why,
                execution,
            }
        });
        let steps: Vec<CodeStep> = steps.collect();
        let ordered = steps.iter().flat_map(|step| program.edges().order_into(&step.id));
        let mut edges: Vec<Edge> = graph.edges().iter().chain(ordered.flatten()).collect();
        edges.sort_by_key(|edge| (program.position(&edge.reader), edge.kind));
        let more_edges = edges.len().saturating_sub(MAX_EDGES);
        edges.truncate(MAX_EDGES);
        let inputs = program.inputs();
        let rollbacks = program.operations(0).iter().filter_map(|operation| match operation {
            Operation { change: Change::RolledBack { version }, provenance, .. } => {
                Some((*version, provenance.clone()))
            }
            _ => None,
        });
        Some(Self {
            field: field.to_owned(),
            replay,
            inputs: inputs.map(|input| (input.name.clone(), input.json.clone())).collect(),
            more_edges,
            edges,
            versions: versions(&ledger, &graph),
            earlier_versions: program.versions().len().saturating_sub(MAX_VERSIONS),
            rollbacks: rollbacks.collect(),
            steps,
            diagnosis,
            reviewed,
            ledger,
        })
    }

    /// How many steps have this status.
    #[must_use]
    pub fn count(&self, status: CodeStatus) -> usize {
        self.steps.iter().filter(|step| step.status == status).count()
    }

    /// Why the diagnosis is not one of the program as it is; `None` if it is, and without one. A loop may
    /// change the program, or run it, without a step that diagnoses it again.
    ///
    /// ```
    /// # fn example(state: &serde_json::Value) {
    /// for program in harness::inspect::report::programs(state) {
    ///     match (&program.diagnosis, program.outdated()) {
    ///         (Some(diagnosis), None) => println!("it fails: {}", diagnosis.error()),
    ///         (_, Some(why)) => println!("it failed before: {why}"),
    ///         (None, None) => {}
    ///     }
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn outdated(&self) -> Option<String> {
        let diagnosis = self.diagnosis.as_ref()?;
        let failing = &diagnosis.failing.step;
        let Some(step) = self.steps.iter().find(|step| step.id == *failing) else {
            return Some(format!("the program has no step `{failing}` any more"));
        };
        let fails_so = step.execution.as_ref().is_some_and(|it| it.ending == diagnosis.ending);
        match step.status {
            CodeStatus::Failed if fails_so => None,
            CodeStatus::Stale | CodeStatus::New => {
                Some(format!("`{failing}` is to run again, or may"))
            }
            _ => Some(format!("`{failing}` does not fail so any more")),
        }
    }

    /// How many steps the last replay ran, kept and left failed.
    fn last_replay(&self) -> (usize, usize, usize) {
        let all = self.replay.and_then(|run| self.ledger.replayed(run)).unwrap_or_default();
        let is_step = |it: &&Arc<Execution>| self.ledger.program().step(&it.step).is_ok();
        let ran = |it: &&Arc<Execution>| Some(it.run) == self.replay;
        let steps = || all.iter().filter(is_step);
        let ran = steps().filter(ran).count();
        let failed = steps().filter(|it| !it.ending.is_ok()).count();
        (ran, steps().count() - ran, failed)
    }

    /// The version with this number.
    #[must_use]
    pub fn version(&self, number: u32) -> Option<&CodeVersion> {
        let name = format!("v{number}");
        self.versions.iter().find(|one| one.version.id.to_string() == name)
    }

    /// The program with its versions, executions and replays.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The edges between two spots of a drawing: of each pair, one for each kind.
    fn arrows(&self) -> BTreeSet<(usize, usize, EdgeKind)> {
        let inputs = self.inputs.iter().map(|(name, _)| format!("input {name}"));
        let steps = self.steps.iter().map(|step| step.id.to_string());
        let rows: BTreeMap<String, usize> =
            inputs.chain(steps).enumerate().map(|(at, name)| (name, at)).collect();
        let ends = |edge: &Edge| {
            let from = rows.get(&edge.producer.to_string())?;
            Some((*from, *rows.get(&*edge.reader)?, edge.kind))
        };
        self.edges.iter().filter_map(ends).collect()
    }
}

/// Which steps would run, and why.
fn stale(plan: &Plan) -> BTreeMap<Arc<str>, String> {
    plan.steps().map(|(step, reason)| (Arc::from(step), reason.to_string())).collect()
}

/// What the next replay finds of a step, by its execution of the last replay and the one that holds now.
fn status(
    stale: Option<&String>,
    last: Option<&Arc<Execution>>,
    holds: Option<&Arc<Execution>>,
    replay: Option<u64>,
) -> (CodeStatus, Option<String>) {
    let ran = |it: &Execution| Some(format!("it ran in replay {}", it.run));
    match (stale, last, holds) {
        (Some(why), Some(_), _) => (CodeStatus::Stale, Some(why.clone())),
        (_, _, Some(it)) if !it.ending.is_ok() => (CodeStatus::Failed, Some(it.ending.to_string())),
        (_, Some(last), Some(it)) if last.seq == it.seq && Some(it.run) == replay => {
            (CodeStatus::Ran, None)
        }
        (_, _, Some(it)) => (CodeStatus::Kept, ran(it)),
        (why, _, None) => (CodeStatus::New, why.cloned()),
    }
}

fn versions(ledger: &Ledger, graph: &CodeGraph) -> Vec<CodeVersion> {
    let program = ledger.program();
    let all = program.versions();
    let mut credits: BTreeMap<VersionId, Credit> =
        graph.credit().into_iter().map(|credit| (credit.version, credit)).collect();
    let of_step = |version: &Version| match version.kind {
        VersionKind::Step => program.step(&version.step).ok().map(|step| step.version),
        _ => program.inputs().find(|it| it.name == version.step).map(|it| it.version),
    };
    let report = |version: &Version| {
        let before = version.parent.and_then(|parent| program.version(parent).ok());
        CodeVersion {
            version: version.clone(),
            current: of_step(version) == Some(version.id),
            lines: before
                .map(|before| between(&before.source, &version.source))
                .unwrap_or_default(),
            credit: credits.remove(&version.id),
        }
    };
    let skipped = all.len().saturating_sub(MAX_VERSIONS);
    all[skipped..].iter().map(report).collect()
}

/// How long an execution took, with its values.
fn took(execution: &Execution) -> Duration {
    execution.wall + execution.host
}

/// How an edge is meant.
fn meaning(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Flow => "loads what the other has bound",
        EdgeKind::LateBound => "calls functions that load it",
        EdgeKind::Alias => "changes an object by another name",
        EdgeKind::Order => "replaces what the other needs or made",
        _ => "needs it",
    }
}

/// Where a version or an operation comes from, in words.
fn origin(provenance: &Provenance) -> String {
    let kind = match provenance.kind {
        harness_esg::ProvenanceKind::Written => "written",
        harness_esg::ProvenanceKind::Generated => "generated by a model",
        harness_esg::ProvenanceKind::Patched => "patched",
        _ => "changed",
    };
    let mut words = kind.to_owned();
    for (name, value) in [
        (" by", &provenance.agent),
        (", run", &provenance.run),
        (", call", &provenance.call),
        (", for", &provenance.diagnosis),
        (":", &provenance.why),
    ] {
        if let Some(value) = value {
            words.push_str(name);
            words.push(' ');
            words.push_str(&super::lines::clipped(value, 200));
        }
    }
    words
}

/// What a step printed.
fn printed(execution: &Execution) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&execution.stdout.bytes), text(&execution.stderr.bytes))
}
