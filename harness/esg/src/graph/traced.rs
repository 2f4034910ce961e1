//! Which step read what another one wrote, as recorded.
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::CodeGraph;
use crate::model::Entity;
use crate::program::{Edges, Observed};
use crate::trace::Execution;

/// A dependency: a step read or altered what another one had written last.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TracedEdge {
    /// The step that wrote.
    pub from: Arc<str>,
    /// The step that read.
    pub to: Arc<str>,
    /// What it read.
    pub reads: Vec<Entity>,
    /// What it altered through shared objects without reading it.
    pub alters: Vec<Entity>,
}

impl CodeGraph {
    /// The dependencies of the executions that represent the steps since the last replay, in the
    /// order of the reading steps.
    pub fn traced_edges(&self) -> impl Iterator<Item = TracedEdge> {
        let mut edges = Vec::new();
        for step in self.planned() {
            let Some(execution) = self.engine.ledger.execution(&step.id) else { continue };
            let mut from: BTreeMap<Arc<str>, TracedEdge> = BTreeMap::new();
            let reads = execution.trace.reads.iter().map(|(entity, read)| (entity, read, true));
            let alters = execution.trace.altered.iter().map(|(entity, read)| (entity, read, false));
            for (entity, read, looked) in reads.chain(alters) {
                let Some(by) = read.by.as_ref().filter(|by| **by != step.id) else { continue };
                let edge = from.entry(by.clone()).or_insert_with(|| TracedEdge {
                    from: by.clone(),
                    to: step.id.clone(),
                    reads: Vec::new(),
                    alters: Vec::new(),
                });
                if looked { &mut edge.reads } else { &mut edge.alters }.push(entity.clone());
            }
            edges.extend(from.into_values());
        }
        edges.into_iter()
    }

    /// The dependencies between steps. A step that ran in the last replay and was not edited since
    /// has those it had then; any other those that its source allows. An edge with an execution at
    /// both ends is [`Traced`](crate::EdgeSource::Traced).
    ///
    /// Unlike [`traced_edges`](Self::traced_edges), these follow the edits of the program.
    pub fn edges(&self) -> Edges<'_> {
        self.program().edges()
    }

    /// Reports to the program what its steps did.
    pub(super) fn take_in(&mut self) {
        let mut credits = self.credits();
        let ids: Vec<Arc<str>> = self.program().steps().map(|step| step.id.clone()).collect();
        for step in ids {
            let Some(execution) = self.engine.ledger.execution(&step) else {
                self.engine.ledger.program.unobserve(&step);
                continue;
            };
            let now =
                Seen { seq: execution.seq, credit: credits.remove(&step).unwrap_or_default() };
            if self.seen.get(&step) == Some(&now) && self.program().is_observed(&step) {
                continue;
            }
            let same = self.program().step(&step).is_ok_and(|at| at.syntax == execution.syntax);
            if same
                && self
                    .engine
                    .ledger
                    .program
                    .observe(&step, observed(execution, &now.credit))
                    .is_ok()
            {
                self.seen.insert(step, now);
            }
        }
    }

    /// By step: what others found in the version this step left, although it wrote something else.
    /// A step that changes a class changes what the names of its instances refer to.
    fn credits(&self) -> HashMap<Arc<str>, BTreeSet<Entity>> {
        let mut credits: HashMap<Arc<str>, BTreeSet<Entity>> = HashMap::new();
        for execution in self.engine.ledger.standing().values() {
            let trace = &execution.trace;
            for (entity, read) in trace.reads.iter().chain(&trace.altered) {
                let Some(by) = &read.by else { continue };
                let writer = self.engine.ledger.execution(by);
                if writer.is_some_and(|writer| !writer.trace.wrote.contains_key(entity)) {
                    credits.entry(by.clone()).or_default().insert(entity.clone());
                }
            }
        }
        credits
    }
}

/// What was reported of a step.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// The number of the execution.
    seq: u64,
    /// What others found in the version it left, besides what it wrote.
    credit: BTreeSet<Entity>,
}

fn observed(execution: &Execution, credit: &BTreeSet<Entity>) -> Observed {
    let trace = &execution.trace;
    let wrote = trace.wrote.keys().chain(credit);
    // No step writes the others.
    let reads = trace
        .reads
        .keys()
        .filter(|entity| !matches!(entity, Entity::External(_) | Entity::Package(_)));
    Observed::new(reads.cloned(), wrote.cloned()).altering(trace.altered.keys().cloned())
}
