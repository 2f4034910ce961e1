//! What a graph does with a worker that can do less.
use super::TinyWorker;
use crate::exec::Caps;
use crate::{Blobs, CodeGraph, Program};

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
