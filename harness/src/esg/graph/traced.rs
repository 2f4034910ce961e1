//! Which step read what another one wrote, as it happened.
use std::collections::BTreeMap;
use std::sync::Arc;

use super::CodeGraph;
use crate::esg::model::Entity;
use crate::esg::program::{Edges, Observed};
use crate::esg::trace::Execution;

/// That a step read, or altered, what another one had written last.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TracedEdge {
    /// The step that wrote.
    pub from: Arc<str>,
    /// The step that read.
    pub to: Arc<str>,
    /// What it read.
    pub reads: Vec<Entity>,
    /// What it altered through shared objects, without looking at it.
    pub alters: Vec<Entity>,
}

impl CodeGraph {
    /// The dependencies that the executions standing since the last replay had, in the order of the
    /// reading steps.
    pub fn traced_edges(&self) -> impl Iterator<Item = TracedEdge> {
        let mut edges = Vec::new();
        for step in self.planned() {
            let Some(execution) = self.engine.chosen.get(&step.id) else { continue };
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

    /// What steps need of each other. What a step did in the last replay is taken for what it does,
    /// until it is edited; of every other step, what its source says that it may do. An edge with a
    /// run at both ends is [`Traced`](crate::esg::EdgeSource::Traced).
    ///
    /// Unlike [`traced_edges`](Self::traced_edges) these are kept in step with edits: they are those
    /// of the program as it stands.
    pub fn edges(&self) -> Edges<'_> {
        self.program.edges()
    }

    /// Tells the program what its steps were seen to do.
    pub(super) fn take_in(&mut self) {
        let ids: Vec<Arc<str>> = self.program.steps().map(|step| step.id.clone()).collect();
        for step in ids {
            let Some(execution) = self.engine.chosen.get(&step) else {
                self.program.unobserve(&step);
                continue;
            };
            let known = self.seen.get(&step) == Some(&execution.seq);
            if known && self.program.is_observed(&step) {
                continue;
            }
            let same = self.program.step(&step).is_ok_and(|now| now.syntax == execution.syntax);
            if same && self.program.observe(&step, observed(execution)).is_ok() {
                self.seen.insert(step, execution.seq);
            }
        }
    }
}

fn observed(execution: &Execution) -> Observed {
    let trace = &execution.trace;
    Observed::new(trace.reads.keys().cloned(), trace.wrote.keys().cloned())
        .altering(trace.altered.keys().cloned())
}
