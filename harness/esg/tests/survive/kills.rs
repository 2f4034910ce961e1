//! The worker is killed during a replay.
use std::time::{Duration, Instant};

use harness_esg::{Blobs, CodeGraph, Executor, Program};

use super::{shown, worker};

/// A list that every step extends, so that any loss shows at the end.
pub(crate) fn program(round: usize) -> Vec<(String, String)> {
    let first = ("s0".to_owned(), source(round));
    let rest = (1..10).map(|at| {
        let busy = "for i in range(20000): pass";
        (format!("s{at}"), format!("{busy}\nlog.append(v * {at})\nt{at} = sum(log)"))
    });
    std::iter::once(first).chain(rest).collect()
}

/// The first step.
pub(crate) fn source(round: usize) -> String {
    format!("v = {round}\nlog = []")
}

/// The last name of the program, and its value.
pub(crate) fn end(round: usize) -> (&'static str, String) {
    ("t9", (round * 45).to_string())
}

#[test]
fn a_worker_killed_at_any_moment_is_replaced() {
    const KILLS: usize = 15;
    let python = worker();
    let handle = python.kill_handle();
    let mut graph = CodeGraph::new(Program::new(), python, Blobs::memory());
    graph
        .edit(|steps| {
            program(0).iter().try_for_each(|(id, source)| steps.push(id, source).map(drop))
        })
        .unwrap();
    let begun = Instant::now();
    assert!(graph.replay().unwrap().ok());
    let whole = begun.elapsed();
    let mut hit = 0;
    for round in 1..=KILLS {
        graph.edit(|steps| steps.replace("s0", &source(round))).unwrap();
        // From before the first step until after the last.
        let moment = whole * u32::try_from(round).unwrap() / 12;
        let handle = handle.clone();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(moment);
            handle.kill();
        });
        let replayed = graph.replay();
        killer.join().unwrap();
        if let Ok(report) = &replayed {
            hit += usize::from(!report.ok());
        }
        // A kill does not count as a failure of the program.
        let report = graph.replay().unwrap();
        assert!(report.ok(), "round {round}, killed after {moment:?}: {replayed:?}\nthen {report}");
        let (name, value) = end(round);
        assert_eq!(shown(&mut graph, name), value, "round {round}, killed after {moment:?}");
    }
    assert!(hit > 0, "no step was hit");
    assert!(graph.verify().unwrap().same);
}

#[test]
fn a_worker_that_dies_between_two_replays_is_not_missed() {
    let python = worker();
    let handle = python.kill_handle();
    let mut program = Program::new();
    program.push("a", "xs = [1, 2]\nys = xs").unwrap();
    program.push("b", "n = len(xs)").unwrap();
    let mut graph = CodeGraph::new(program, python, Blobs::memory());
    graph.replay().unwrap();
    handle.kill();
    graph.edit(|program| program.replace("b", "ys.append(3)\nn = len(xs)")).unwrap();
    let report = graph.replay().unwrap();
    assert!(report.ok(), "{report}");
    let ran: Vec<_> = report.executed().map(|step| &**step).collect();
    assert_eq!(ran, ["b"]);
    handle.kill();
    assert_eq!(shown(&mut graph, "xs"), "[1, 2, 3]");
    handle.kill();
    assert!(graph.verify().unwrap().same);
    assert_eq!(shown(&mut graph, "n"), "3");
}

#[test]
fn a_step_that_was_killed_runs_again() {
    let python = worker();
    let handle = python.kill_handle();
    let scratch = python.scratch();
    let mut program = Program::new();
    let wait = "open('here', 'w').close()\nwhile w: pass";
    program.push("w", "w = True").unwrap();
    program.push("loop", wait).unwrap();
    program.push("after", "x = 1").unwrap();
    let mut graph = CodeGraph::new(program, python, Blobs::memory());
    let killer = std::thread::spawn(move || {
        let begun = Instant::now();
        while !scratch.join("here").exists() && begun.elapsed() < Duration::from_secs(20) {
            std::thread::yield_now();
        }
        handle.kill();
    });
    let report = graph.replay().unwrap();
    killer.join().unwrap();
    assert_eq!(report.failed.len(), 1, "{report}");
    assert!(graph.why_stale("loop").unwrap().is_some());
    assert_eq!(shown(&mut graph, "x"), "1");
    graph.edit(|program| program.replace("w", "w = False")).unwrap();
    assert!(graph.replay().unwrap().ok());
    assert!(graph.verify().unwrap().same);
}
