//! Programs designed to break replay, one construct each: after every edit the state must equal
//! that of a full run. Untracked operations must be reported.
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;

use harness_esg::{Blobs, CPython, CodeGraph, Program, Strictness, Trust};

use crate::pythons;

const TRIALS: &str = include_str!("trials.json");

#[derive(Deserialize)]
struct Trial {
    id: String,
    steps: Vec<String>,
    edits: Vec<Edit>,
}

#[derive(Deserialize)]
struct Edit {
    #[serde(default)]
    step: usize,
    /// A new step is inserted before this one; or, without a source, the step moves there.
    before: Option<usize>,
    /// Without a source and a target position, the step is removed.
    source: Option<String>,
}

impl Trial {
    fn edit(&self, edit: &Edit, python: &std::path::Path) -> Option<String> {
        let ids: Vec<_> = (0..self.steps.len()).map(|at| format!("s{at}")).collect();
        let steps: Vec<_> =
            std::iter::zip(&ids, &self.steps).map(|(id, source)| (&**id, &**source)).collect();
        // Those that change state inside packages in place.
        let strict = self.id.starts_with("lib-");
        let strictness = if strict { Strictness::Everything } else { Strictness::default() };
        let worker = CPython::at(python).strictness(strictness).trust(Trust::Mine);
        let mut program = Program::new();
        for (id, source) in steps {
            program.push(id, source).unwrap();
        }
        let mut graph = CodeGraph::new(program, worker.start().unwrap(), Blobs::memory());
        graph.replay().unwrap();
        let step = &*ids[edit.step];
        graph
            .edit(|program| match (&edit.source, edit.before) {
                (Some(source), Some(at)) => {
                    program.insert_before(&ids[at], "new", source).map(drop)
                }
                (Some(source), None) => program.replace(step, source).map(drop),
                (None, Some(at)) => program.move_before(step, &ids[at]),
                (None, None) => program.remove(step),
            })
            .unwrap();
        let report = graph.replay().unwrap();
        if !report.untracked.is_empty() {
            return None;
        }
        let verdict = graph.verify().unwrap();
        (!verdict.same).then(|| format!("{verdict}\n{report}"))
    }
}

#[test]
fn programs_written_to_break_it_end_as_a_full_run_does() {
    let trials: Vec<Trial> = serde_json::from_str(TRIALS).unwrap();
    let pythons = pythons();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(trial) = trials.get(number) else { break };
                    for (at, edit) in trial.edits.iter().enumerate() {
                        // Each edit runs in another Python, which spreads the programs over all of
                        // them.
                        let python = &pythons[(number + at) % pythons.len()];
                        if let Some(what) = trial.edit(edit, python) {
                            let python = python.display();
                            let said = format!("{} edit {at} on {python}: {what}", trial.id);
                            wrong.lock().unwrap().push(said);
                        }
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
