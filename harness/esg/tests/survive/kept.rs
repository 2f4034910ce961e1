//! What a replay leaves in the worker and in its directory, also if most of it was kept, if a value
//! cannot be stored, or if another process had made it.
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use harness_esg::{
    BlobLimits, Blobs, CPython, CodeGraph, Journal, JournalError, Limits, Program, ProgramError,
    Reason, Record, Trust,
};
use serde_json::json;

use super::{graph, interpreters, push, shown, worker, worker_of};

/// The names of the files in a directory, sorted.
fn listed(path: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(path).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_directory_holds_the_files_of_kept_steps_too() {
    let python = worker();
    let scratch = python.scratch();
    let mut graph = CodeGraph::new(Program::new(), python, Blobs::memory());
    graph
        .edit(|program| {
            push(
                program,
                &[
                    ("a", "n = 1"),
                    ("b", "m = n + 1"),
                    ("c", "import os\nos.mkdir('d')\nopen('d/plot', 'w').write('plot')"),
                    ("cd", "import os\nos.chdir('d')"),
                    ("e", "open('last', 'w').write('last')"),
                ],
            )
        })
        .unwrap();
    graph.replay().unwrap();
    let whole = (listed(&scratch), listed(&scratch.join("d")));
    assert_eq!(whole, (vec!["d".to_owned()], vec!["last".to_owned(), "plot".to_owned()]));
    graph.edit(|program| program.replace("b", "m = n + 2")).unwrap();
    let report = graph.replay().unwrap();
    assert_eq!(report.executed().map(|step| &**step).collect::<Vec<_>>(), ["b"]);
    assert_eq!((listed(&scratch), listed(&scratch.join("d"))), whole);

    // Another step fails, and leaves nothing.
    graph.edit(|program| program.push("f", "open('part', 'w').write('')\n1 / 0")).unwrap();
    graph.replay().unwrap();
    assert_eq!((listed(&scratch), listed(&scratch.join("d"))), whole);

    // An earlier state is looked at, and left.
    graph.value_at(1, 0, "n").unwrap();
    assert_eq!((listed(&scratch), listed(&scratch.join("d"))), whole);
    graph.verify().unwrap();
    assert_eq!((listed(&scratch), listed(&scratch.join("d"))), whole);
}

#[test]
fn the_directory_is_filled_by_a_replay_that_runs_nothing_and_by_asking_for_a_value() {
    let dir = tempfile::tempdir().unwrap();
    let steps = [
        ("a", "open('plot', 'w').write('plot')\nn = 1"),
        ("b", "open('big', 'w').write('x' * 99999)"),
    ];
    let mut graph = CodeGraph::open(dir.path(), worker()).unwrap();
    graph.edit(|program| push(program, &steps)).unwrap();
    graph.replay().unwrap();
    drop(graph);
    let scratch = dir.path().join("scratch/work");
    let mut graph = CodeGraph::open(dir.path(), worker()).unwrap();
    assert_eq!(graph.replay().unwrap().executed().count(), 0);
    assert_eq!(listed(&scratch), ["big", "plot"]);
    drop(graph);
    // The value is live after a worker has died.
    let python = worker();
    let kill = harness_esg::Executor::kill_handle(&python);
    let mut graph = CodeGraph::open(dir.path(), python).unwrap();
    graph.replay().unwrap();
    kill.kill();
    assert_eq!(shown(&mut graph, "n"), "1");
    assert_eq!(listed(&scratch), ["big", "plot"]);
}

#[test]
fn paths_in_values_lead_to_the_same_files_in_the_next_process() {
    let dir = tempfile::tempdir().unwrap();
    let steps = [
        (
            "make",
            "import os, sys, tempfile\nopen('a', 'w').write('1')\nwhere = os.path.abspath('a')",
        ),
        (
            "home",
            "home = os.path.expanduser('~/a')\nfirst = sys.path[0]\ntmp = tempfile.gettempdir()",
        ),
        (
            "module",
            "open('made.py', 'w').write('def of():\\n    return open(__file__).read(3)')\nimport made",
        ),
        ("read", "text = open(where).read()"),
    ];
    let mut graph = CodeGraph::open(dir.path(), worker()).unwrap();
    graph.edit(|program| push(program, &steps)).unwrap();
    assert!(graph.replay().unwrap().ok());
    drop(graph);
    let mut graph = CodeGraph::open(dir.path(), worker()).unwrap();
    let source = "text = open(where).read() + open(home).read() + open(first + '/a').read() + open(tmp + '/a').read() + made.of()";
    graph.edit(|program| program.replace("read", source)).unwrap();
    let report = graph.replay().unwrap();
    assert!(report.ok(), "{report}");
    assert_eq!(report.ran, [("read".into(), Reason::Edited)]);
    assert_eq!(shown(&mut graph, "text"), "'1111def'");
    assert!(graph.verify().unwrap().same);
    drop(graph);

    // Elsewhere the paths are others, so nothing stands.
    let moved = tempfile::tempdir().unwrap();
    fs::rename(dir.path(), moved.path().join("there")).unwrap();
    let mut graph = CodeGraph::open(moved.path().join("there"), worker()).unwrap();
    assert_eq!(graph.replay().unwrap().ran[0].1, Reason::Worker);
    assert!(graph.verify().unwrap().same);
}

#[test]
fn other_limits_make_another_worker() {
    let dir = tempfile::tempdir().unwrap();
    let mut graph = CodeGraph::open(dir.path(), worker()).unwrap();
    graph.edit(|program| program.push("a", "n = 1")).unwrap();
    graph.replay().unwrap();
    drop(graph);
    let limits = Limits { address_space: 600 << 20, ..Limits::default() };
    let python = CPython::at(&interpreters()[0]).limits(limits).trust(Trust::Mine).start().unwrap();
    let mut graph = CodeGraph::open(dir.path(), python).unwrap();
    assert_eq!(graph.replay().unwrap().ran, [("a".into(), Reason::Worker)]);
}

#[test]
fn a_value_above_the_limit_of_the_store_is_made_again() {
    let mut limits = BlobLimits::default();
    limits.value = 4096;
    let mut graph = CodeGraph::new(Program::new(), worker(), Blobs::memory_with(limits));
    let steps =
        [("a", "k = 1\nxs = list(range(k, 9999))"), ("b", "xs.append(k)"), ("c", "n = len(xs)")];
    graph.edit(|program| push(program, &steps)).unwrap();
    let report = graph.replay().unwrap();
    assert!(report.ok(), "{report}");
    assert_eq!(shown(&mut graph, "n"), "9999");
    graph.edit(|program| program.replace("b", "xs.append(k)\nxs.append(k)")).unwrap();
    let report = graph.replay().unwrap();
    assert_eq!(report.rebuilt, ["a".into()], "{report}");
    assert_eq!(shown(&mut graph, "n"), "10000");
    assert!(graph.verify().unwrap().same);
}

#[test]
fn after_a_failed_write_nothing_of_the_step_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let mut graph = CodeGraph::open(dir.path(), worker()).unwrap();
    let steps = [("a", "xs = [1]"), ("b", "xs.append(2)\nys = [0] * 5000"), ("c", "n = len(xs)")];
    graph.edit(|program| push(program, &steps)).unwrap();
    // Something is in the way of the store's files.
    let blobs = dir.path().join("blobs");
    let away = dir.path().join("away");
    fs::rename(&blobs, &away).unwrap();
    fs::write(&blobs, "").unwrap();
    let failed = graph.replay();
    fs::remove_file(&blobs).unwrap();
    fs::rename(&away, &blobs).unwrap();
    assert!(failed.is_err());
    assert!(graph.executions().iter().all(|one| &*one.step != "b"), "{:?}", graph.executions());
    assert!(graph.replay().unwrap().ok());
    assert_eq!(shown(&mut graph, "n"), "2");
    assert!(graph.verify().unwrap().same);
    drop(graph);
    let mut graph = CodeGraph::open(dir.path(), worker()).unwrap();
    assert_eq!(graph.replay().unwrap().executed().count(), 0);
}

/// A journal that takes no more executions once it is full.
#[derive(Debug)]
struct Full(Arc<AtomicBool>);

impl Journal for Full {
    fn append(&mut self, records: &[Record]) -> Result<(), JournalError> {
        let ran = records.iter().any(|record| matches!(record, Record::Ran(_)));
        match ran && self.0.load(Ordering::Relaxed) {
            true => Err(JournalError::new("full")),
            false => Ok(()),
        }
    }
}

#[test]
fn an_execution_that_no_journal_holds_did_not_happen() {
    let full = Arc::new(AtomicBool::new(false));
    let graph = CodeGraph::new(Program::new(), worker(), Blobs::memory());
    let mut graph = graph.with_journal(Full(full.clone()));
    graph.edit(|program| push(program, &[("a", "xs = [1]"), ("n", "n = len(xs)")])).unwrap();
    graph.replay().unwrap();
    graph.edit(|program| program.insert_before("n", "b", "xs.append(2)")).unwrap();
    full.store(true, Ordering::Relaxed);
    assert!(graph.replay().is_err());
    assert!(graph.executions().iter().all(|one| &*one.step != "b"), "{:?}", graph.executions());
    full.store(false, Ordering::Relaxed);
    let report = graph.replay().unwrap();
    assert_eq!(report.ran.first().map(|(step, _)| &**step), Some("b"), "{report}");
    assert_eq!(shown(&mut graph, "n"), "2");
    assert!(graph.verify().unwrap().same);
}

#[test]
fn a_step_cannot_take_the_name_of_an_input() {
    let mut program = Program::new();
    let refused = program.push("input/x", "y = 1").unwrap_err();
    assert!(matches!(refused, ProgramError::BadId { .. }), "{refused}");
    assert!(refused.to_string().contains("input"), "{refused}");
}

#[test]
fn a_timeout_without_work_is_no_result() {
    let dir = tempfile::tempdir().unwrap();
    let flag = dir.path().join("flag");
    // Waits for something that is not there the first time, as an import on a busy machine does.
    let source = format!(
        "import os, time\nwhile not os.path.exists({:?}): time.sleep(0.01)\nx = 1",
        flag.display().to_string()
    );
    let mut graph =
        CodeGraph::new(Program::new(), worker_of(0, Duration::from_secs(1)), Blobs::memory());
    graph.edit(|program| program.push("wait", &source)).unwrap();
    let report = graph.replay().unwrap();
    assert_eq!(report.failed.len(), 1, "{report}");
    let again = graph.replay().unwrap();
    assert_eq!(again.ran, [("wait".into(), Reason::Accident)], "{again}");
}
#[test]
fn inputs_keep_large_integers_and_refuse_what_is_nested_too_deep() {
    let mut graph = graph(&[("a", "n = big[0] + 1"), ("b", "m = type(big[1]).__name__")]);
    let long = "123456789012345678901234567890";
    graph
        .edit(|program| program.input_json("big", &format!("[{long}, -18446744073709551617]")))
        .unwrap();
    graph.replay().unwrap();
    assert_eq!(shown(&mut graph, "n"), "123456789012345678901234567891");
    assert_eq!(shown(&mut graph, "m"), "'int'");
    // A result of that size has no exact form as JSON here.
    assert_eq!(graph.value("n").unwrap().json, None);
    graph.edit(|program| program.input("big", json!([u64::MAX, i64::MIN]))).unwrap();
    graph.replay().unwrap();
    assert_eq!(graph.value("n").unwrap().repr, "18446744073709551616");

    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let refused = graph.edit(|program| program.input("big", deep.clone())).unwrap_err();
    assert!(matches!(refused.as_program(), Some(ProgramError::InputJson { .. })), "{refused:?}");
    let refused = graph.edit(|program| program.input_json("big", "[1,")).unwrap_err();
    assert!(matches!(refused.as_program(), Some(ProgramError::InputJson { .. })), "{refused:?}");
    assert!(matches!(
        graph
            .edit(|program| program.input_json("big", &deep.to_string()))
            .unwrap_err()
            .as_program(),
        Some(ProgramError::InputJson { .. })
    ));
    assert_eq!(graph.value("n").unwrap().repr, "18446744073709551616");
}

#[test]
fn inputs_of_a_stored_graph_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let long = "123456789012345678901234567890";
    let mut graph = CodeGraph::open(dir.path(), worker()).unwrap();
    graph.edit(|program| program.input_json("big", long)).unwrap();
    let deep = (0..90).fold(json!(1), |inner, _| json!([inner]));
    graph.edit(|program| program.input("deep", deep)).unwrap();
    graph.edit(|program| program.push("a", "n = big + 1")).unwrap();
    graph.replay().unwrap();
    drop(graph);
    let mut graph = CodeGraph::open(dir.path(), worker()).unwrap();
    assert_eq!(graph.replay().unwrap().executed().count(), 0);
    assert_eq!(shown(&mut graph, "n"), "123456789012345678901234567891");
}

#[test]
fn what_only_old_replays_used_is_discarded() {
    let dir = tempfile::tempdir().unwrap();
    let mut graph = CodeGraph::open(dir.path(), worker()).unwrap();
    let steps = [("a", "a = 0"), ("first", "first = [1]"), ("b", "b = a"), ("c", "c = b")];
    graph.edit(|program| push(program, &steps)).unwrap();
    let size = || fs::metadata(dir.path().join("journal")).unwrap().len();
    let (mut most, mut shrunk) = (0, 0);
    for n in 0..400 {
        let before = size();
        graph.edit(|program| program.replace("a", &format!("a = {n}"))).unwrap();
        assert!(graph.replay().unwrap().ok());
        most = most.max(graph.executions().len());
        shrunk = shrunk.max(before.saturating_sub(size()));
    }
    // All but those of the last 256 replays and the newest of each step.
    assert!(most <= 1000 && graph.executions().len() < 1000, "{most}");
    assert!(shrunk > size() / 10, "{shrunk} of {}", size());
    assert!(graph.ran_at(1, 0).is_none() && graph.ran_at(390, 0).is_some());
    assert_eq!(graph.replay().unwrap().executed().count(), 0);
    assert!(graph.verify().unwrap().same);
    let count = graph.executions().len();
    drop(graph);
    let mut graph = CodeGraph::open(dir.path(), worker()).unwrap();
    assert_eq!(graph.executions().len(), count);
    assert_eq!(graph.replay().unwrap().executed().count(), 0);
    assert_eq!(shown(&mut graph, "c"), "399");
    assert!(graph.ran_at(390, 0).is_some());
}

#[test]
fn values_of_earlier_versions_do_not_use_up_the_memory() {
    // Each is too large to be stored, and sixteen do not fit.
    let limits = Limits { address_space: 1 << 30, value: 1 << 20, ..Limits::default() };
    let python = CPython::at(&interpreters()[0]).limits(limits).trust(Trust::Mine).start().unwrap();
    let mut graph = CodeGraph::new(Program::new(), python, Blobs::memory());
    let source = |n: usize| format!("xs = [{n}] * 8_000_000");
    graph.edit(|program| push(program, &[("xs", &source(0)), ("n", "n = xs[0]")])).unwrap();
    for n in 0..20 {
        graph.edit(|program| program.replace("xs", &source(n)).map(drop)).unwrap();
        let report = graph.replay().unwrap();
        assert!(report.ok(), "{n}: {report}");
    }
    assert_eq!(shown(&mut graph, "n"), "19");
}
