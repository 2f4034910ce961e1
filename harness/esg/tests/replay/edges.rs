//! Programs with edits and the steps that they must re-run. Written by hand and checked against
//! CPython: leaving out any required step gave another state.
use std::collections::BTreeSet;
use std::path::Path;

use harness_esg::{CodeGraph, EdgeSource};
use serde::Deserialize;

use crate::{graph, pythons};

const PROGRAMS: &str = include_str!("edges.json");

#[derive(Deserialize)]
struct File {
    programs: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    steps: Vec<Step>,
    edges: Vec<(String, String, Vec<String>)>,
    alias_edges: Vec<(String, String, Vec<String>)>,
    edits: Vec<Edit>,
}

#[derive(Deserialize)]
struct Step {
    id: String,
    source: String,
}

#[derive(Deserialize)]
struct Edit {
    step: String,
    new_source: Option<String>,
    rerun: BTreeSet<String>,
    essential: BTreeSet<String>,
}

impl Entry {
    fn ran(&self, python: &Path) -> CodeGraph {
        let steps: Vec<_> = self.steps.iter().map(|step| (&*step.id, &*step.source)).collect();
        let mut graph = graph(python, &steps);
        graph.replay().unwrap();
        graph
    }

    /// The faults in the edges of a run.
    fn edges(&self, graph: &CodeGraph, wrong: &mut Vec<String>) {
        let pair = |(from, to, _): &(String, String, Vec<String>)| (from.clone(), to.clone());
        let wanted: BTreeSet<_> = self.edges.iter().map(pair).collect();
        let allowed: BTreeSet<_> = self.alias_edges.iter().map(pair).collect();
        let found: BTreeSet<_> =
            graph.traced_edges().map(|edge| (edge.from.to_string(), edge.to.to_string())).collect();
        for edge in wanted.difference(&found) {
            wrong.push(format!("{}: no edge {edge:?}", self.id));
        }
        for edge in found.difference(&wanted).filter(|edge| !allowed.contains(*edge)) {
            wrong.push(format!("{}: spurious edge {edge:?}", self.id));
        }
    }

    /// Whether the program's edges equal the recorded ones after a replay.
    fn in_step(name: &str, graph: &CodeGraph, wrong: &mut Vec<String>) {
        let seen: BTreeSet<_> =
            graph.traced_edges().map(|edge| (edge.from.to_string(), edge.to.to_string())).collect();
        let mut taken = BTreeSet::new();
        for edge in graph.edges().iter() {
            if edge.source != EdgeSource::Traced {
                wrong.push(format!("{name}: not traced: {edge}"));
            }
            taken.insert((edge.producer.to_string(), edge.reader.to_string()));
        }
        for edge in seen.symmetric_difference(&taken) {
            let side = if seen.contains(edge) { "seen" } else { "taken in" };
            wrong.push(format!("{name}: only {side}: {edge:?}"));
        }
    }

    fn edit(&self, at: usize, edit: &Edit, python: &Path, wrong: &mut Vec<String>) {
        let name = format!("{} edit {at} of {}", self.id, edit.step);
        let mut graph = self.ran(python);
        match &edit.new_source {
            Some(source) => {
                graph.edit(|program| program.replace(&edit.step, source)).unwrap();
            }
            None => graph.edit(|program| program.remove(&edit.step)).unwrap(),
        }
        let plan = graph.plan();
        let report = graph.replay().unwrap();
        let planned: BTreeSet<_> = plan.steps().map(|(step, _)| step.to_owned()).collect();
        let ran: BTreeSet<_> = report.executed().map(ToString::to_string).collect();
        if !ran.is_subset(&planned) {
            wrong.push(format!("{name}: ran {ran:?}, planned {planned:?}"));
        }
        Self::in_step(&name, &graph, wrong);
        if !edit.essential.is_subset(&ran) || !ran.is_subset(&edit.rerun) {
            wrong.push(format!("{name}: ran {ran:?}, minimal {:?}", edit.rerun));
        }
        if !report.untracked.is_empty() {
            wrong.push(format!("{name}: untracked {:?}", report.untracked));
        }
        let verdict = graph.verify().unwrap();
        if !verdict.same {
            wrong.push(format!("{name}: {verdict}"));
        }
        let again = graph.replay().unwrap();
        if again.executed().next().is_some() {
            wrong.push(format!("{name}: a second replay ran {again}"));
        }
    }
}

#[test]
fn every_edit_runs_what_it_must_and_no_more_and_leaves_what_a_full_run_leaves() {
    let file: File = serde_json::from_str(PROGRAMS).unwrap();
    for python in pythons() {
        let mut wrong = Vec::new();
        for entry in &file.programs {
            let graph = entry.ran(&python);
            entry.edges(&graph, &mut wrong);
            Entry::in_step(&entry.id, &graph, &mut wrong);
            for (at, edit) in entry.edits.iter().enumerate() {
                entry.edit(at, edit, &python, &mut wrong);
            }
        }
        assert!(wrong.is_empty(), "Python {}:\n{}", python.display(), wrong.join("\n"));
    }
}

#[test]
fn what_was_seen_holds_until_the_step_is_edited_and_is_seen_again() {
    let python = &pythons()[0];
    let mut graph = graph(python, &[("a", "x = 1"), ("b", "y = x if x else z"), ("c", "w = y")]);
    let shown = |graph: &CodeGraph| -> Vec<String> {
        let edges = graph.edges();
        edges.iter().map(|edge| format!("{edge} {:?}", edge.source)).collect()
    };
    let [mut seen, expected] = [
        ["a -> b: x (flow) Traced", "b -> c: y (flow) Traced"],
        ["a -> b: x (flow) Static", "b -> c: y (flow) Static"],
    ];
    assert_eq!(shown(&graph), expected);
    graph.replay().unwrap();
    assert_eq!(shown(&graph), seen);
    graph.edit(|program| program.replace("b", "y = x or 2")).unwrap();
    assert_eq!(shown(&graph), expected);
    graph.replay_to("b").unwrap();
    seen[1] = expected[1];
    assert_eq!(shown(&graph), seen);
    // An undone edit keeps the recorded effects.
    assert!(graph.edit(|program| program.replace("b", "y = 2").and(program.remove("q"))).is_err());
    assert_eq!(shown(&graph), seen);
}
