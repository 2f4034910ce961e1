//! What a graph does with a worker that can do less.
use std::sync::{Arc, Mutex};

use super::TinyWorker;
use crate::exec::Caps;
use crate::{Blobs, CodeGraph, Part, Patch, Program};

const SCRIPT: &str = "# %% load\nxs = [1, 2]\n# %% grow\nxs.append(3)\n# %% sum\nn = sum(xs)";

fn graph(caps: Caps) -> CodeGraph {
    let program = Program::from_script(SCRIPT).unwrap();
    CodeGraph::new(program, TinyWorker::limited(caps), Blobs::memory())
}

#[test]
fn without_stored_values_everything_is_made_again() {
    let mut graph = graph(TinyWorker::CAPS.restores(false));
    graph.replay().unwrap();
    for (step, source, sum) in
        [("sum", "n = sum(xs) + 1", "7"), ("grow", "xs.append(5)", "9"), ("load", "xs = [4]", "10")]
    {
        graph.edit(|edit| edit.replace(step, source)).unwrap();
        let report = graph.replay().unwrap();
        assert!(report.ok(), "{report}");
        assert_eq!(graph.value("n").unwrap().repr, sum);
        assert!(graph.verify().unwrap().same, "{step}");
    }
}

#[test]
fn what_the_executor_cannot_do_is_refused() {
    let mut graph = graph(TinyWorker::CAPS.twins(false).interrupts(false));
    graph.replay().unwrap();
    let refused = graph.verify().unwrap_err();
    assert!(refused.is_unsupported() && refused.to_string().contains("no second worker"));
    assert!(graph.kill_handle().unwrap_err().is_unsupported());
}

#[test]
fn a_step_that_the_language_lacks_says_what_is_missing() {
    let mut graph = graph(TinyWorker::CAPS);
    graph.edit(|edit| edit.push("more", "import os")).unwrap();
    let report = graph.replay().unwrap();
    let (_, ending) = &report.failed[0];
    assert_eq!(ending.to_string(), "this worker does not support import os");
}

#[test]
fn a_worker_that_is_killed_between_steps_is_replaced() {
    let mut graph = graph(TinyWorker::CAPS);
    graph.replay().unwrap();
    graph.kill_handle().unwrap().kill();
    graph.edit(|edit| edit.replace("sum", "n = len(xs)")).unwrap();
    assert!(graph.replay().unwrap().ok());
    assert_eq!(graph.value("n").unwrap().repr, "3");
    assert!(graph.verify().unwrap().same);
}

#[test]
fn of_an_artifact_of_tests_a_patch_runs_those_it_reaches() {
    let ran = Arc::new(Mutex::new(Vec::<String>::new()));
    let noted = Arc::clone(&ran);
    let worker = TinyWorker::new().before_run(move |request| {
        noted.lock().unwrap().push(request.step.to_owned());
        Ok(())
    });
    let (mut program, mut parts) = (Program::new(), Vec::new());
    for number in 0..50 {
        program.push(&format!("code{number}"), &format!("f{number} = {number}")).unwrap();
    }
    for number in 0..50 {
        let test = format!("test{number}");
        program.push(&test, &format!("t{number} = 1 + f{number}")).unwrap();
        parts.push(Part::step(&test));
    }
    program.artifact("tests", parts).unwrap();
    let mut graph = CodeGraph::new(program, worker, Blobs::memory());
    assert!(graph.replay().unwrap().ok());
    assert_eq!(ran.lock().unwrap().len(), 100);
    for number in [0, 17, 49] {
        ran.lock().unwrap().clear();
        let patch = Patch::step(&format!("code{number}"), &format!("f{number} = 100"));
        graph.edit(|program| program.patch(&patch)).unwrap();
        assert!(graph.replay().unwrap().ok());
        let wanted = [format!("code{number}"), format!("test{number}")];
        assert_eq!(*ran.lock().unwrap(), wanted);
    }
}
