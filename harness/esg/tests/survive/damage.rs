//! StoredValue files are lost, damaged, or from another Python.
use std::fs;
use std::path::Path;
use std::time::Duration;

use harness_esg::{
    BlobLimits, Blobs, Caps, CodeGraph, EsgError, ExecError, Executor, KillHandle, Program, Ran,
    Reason, RunStep, Swept, Sync, Synced, Value,
};

use super::{interpreters, push, shown, worker, worker_of};

/// An executor that cannot run, for graphs that are only opened.
#[derive(Debug)]
struct Nowhere;

impl Executor for Nowhere {
    fn fingerprint(&self) -> &str {
        "nowhere"
    }
    fn caps(&self) -> Caps {
        Caps::new(None)
    }
    fn fresh(&mut self) -> Result<(), ExecError> {
        Err(ExecError::new("nothing runs here"))
    }
    fn sync(&mut self, _: &Sync) -> Result<Synced, ExecError> {
        Err(ExecError::new("nothing runs here"))
    }
    fn run(&mut self, _: &RunStep<'_>) -> Result<Ran, ExecError> {
        Err(ExecError::new("nothing runs here"))
    }
    fn sweep(&mut self) -> Result<Swept, ExecError> {
        Err(ExecError::new("nothing runs here"))
    }
    fn value(&mut self, _: &str) -> Result<Value, ExecError> {
        Err(ExecError::new("nothing runs here"))
    }
    fn kill_handle(&self) -> KillHandle {
        KillHandle::new(|| ())
    }
    fn twin(&mut self) -> Result<Box<dyn Executor>, ExecError> {
        Err(ExecError::new("nothing runs here"))
    }
}

/// Values too large to be inline in the journal.
const STEPS: &[(&str, &str)] = &[
    ("rows", "rows = list(range(20000))\nalias = rows"),
    ("grow", "rows.append(7)"),
    ("count", "n = len(alias)"),
];

fn kept(dir: &Path, steps: &[(&str, &str)]) {
    let mut graph = CodeGraph::open(dir, worker()).unwrap();
    graph.edit(|program| push(program, steps)).unwrap();
    assert!(graph.replay().unwrap().ok());
}

/// The files in a directory and below.
fn files(dir: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

#[test]
fn damaged_values_are_made_again() {
    // Damages all of a value's file, its beginning, its middle, its end; or removes half of it.
    for damage in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        kept(dir.path(), STEPS);
        let mut paths = Vec::new();
        files(&dir.path().join("blobs"), &mut paths);
        let mut large = 0;
        for path in paths {
            let mut bytes = fs::read(&path).unwrap();
            if bytes.len() < 1000 {
                continue;
            }
            large += 1;
            let last = bytes.len() - 1;
            match damage {
                0 => bytes.iter_mut().for_each(|byte| *byte ^= 0x55),
                1 => bytes[..100].fill(0),
                2 => bytes[last / 2] ^= 1,
                3 => bytes[last] ^= 0x80,
                _ => bytes.truncate(last / 2),
            }
            fs::write(&path, bytes).unwrap();
        }
        assert!(large > 0, "there is nothing to damage");
        let mut graph = CodeGraph::open(dir.path(), worker()).unwrap();
        graph.edit(|program| program.replace("count", "n = alias[-1] + len(rows)")).unwrap();
        let report = graph.replay().unwrap();
        assert!(report.ok(), "damage {damage}: {report}");
        assert_eq!(shown(&mut graph, "n"), "20008", "damage {damage}");
    }
}

#[test]
fn another_python_takes_over_nothing() {
    let dir = tempfile::tempdir().unwrap();
    kept(dir.path(), STEPS);
    let others = interpreters().len();
    for n in 1..others {
        let python = worker_of(n, Duration::from_secs(30));
        let mut graph = CodeGraph::open(dir.path(), python).unwrap();
        let report = graph.replay().unwrap();
        let reasons: Vec<_> = report.ran.iter().map(|(_, reason)| reason.clone()).collect();
        assert_eq!(reasons, vec![Reason::Worker; STEPS.len()], "{report}");
        assert_eq!(shown(&mut graph, "n"), "20001");
        assert!(graph.verify().unwrap().same);
    }
    // What the first run made is still valid.
    let mut graph = CodeGraph::open(dir.path(), worker()).unwrap();
    let report = graph.replay().unwrap();
    assert!(report.ran.is_empty() && report.rebuilt.is_empty(), "{report}");
    assert_eq!(shown(&mut graph, "n"), "20001");
    graph.edit(|program| program.replace("count", "n = sum(alias[:3])")).unwrap();
    assert!(graph.replay().unwrap().ok());
    assert!(graph.verify().unwrap().same);
}

/// A small journal, and the number of executions at each of its line ends.
fn journal() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    kept(dir.path(), &[("a", "xs = [1, 2]"), ("b", "n = len(xs)")]);
    fs::read(dir.path().join("journal")).unwrap()
}

/// A store with room for this many values.
fn room_for(values: u64) -> Blobs {
    let mut limits = BlobLimits::default();
    limits.store = values * 100_000;
    Blobs::memory_with(limits)
}

#[test]
fn a_value_that_went_for_want_of_room_is_made_again() {
    for values in 0..=4 {
        let mut graph = CodeGraph::new(Program::new(), worker(), room_for(values));
        let large = |at: u8| format!("v{at} = bytes([{at}]) * 90_000");
        graph
            .edit(|program| {
                for at in 1..=3 {
                    program.push(&format!("make{at}"), &large(at))?;
                    program.push(&format!("grow{at}"), &format!("v{at} += b'!'"))?;
                }
                program.push("sum", "n = len(v1) + len(v2) + len(v3)").map(drop)
            })
            .unwrap();
        assert!(graph.replay().unwrap().ok());
        // The value of `v1` before it grew is only in the store.
        graph.edit(|program| program.replace("grow1", "v1 += b'??'").map(drop)).unwrap();
        let report = graph.replay().unwrap();
        assert!(report.ok(), "room for {values}: {report}");
        assert_eq!(shown(&mut graph, "n"), "270004", "room for {values}");
        let again = report.ran.iter().any(|(step, _)| &**step == "make1");
        let again = again || report.rebuilt.iter().any(|step| &**step == "make1");
        assert!(values > 1 || again, "room for {values}: {report}");
        assert!(graph.verify().unwrap().same, "room for {values}");
    }
}

fn open(dir: &Path, journal: &[u8]) -> Result<CodeGraph, EsgError> {
    fs::write(dir.join("journal"), journal).unwrap();
    CodeGraph::open(dir, Nowhere)
}

fn lines(journal: &[u8]) -> Vec<usize> {
    (0..journal.len()).filter(|&at| journal[at] == b'\n').map(|at| at + 1).collect()
}

#[test]
fn a_journal_cut_anywhere_is_read_up_to_its_last_whole_line() {
    let whole = journal();
    let lines = lines(&whole);
    assert!(lines.len() >= 5, "two steps, two executions and an end");
    let dir = tempfile::tempdir().unwrap();
    for cut in 0..=whole.len() {
        let graph = open(dir.path(), &whole[..cut]).unwrap();
        let kept = lines.iter().filter(|&&end| end <= cut).count();
        let steps = graph.program().steps().count();
        let runs = graph.executions().len();
        assert_eq!((steps, runs), (kept.min(2), kept.saturating_sub(2).min(2)), "cut at {cut}");
        drop(graph);
        let end = lines.iter().rev().find(|&&end| end <= cut).copied().unwrap_or(0);
        let left = fs::metadata(dir.path().join("journal")).unwrap().len();
        assert_eq!(left, end as u64, "cut at {cut}");
    }
    // And the session continues from there.
    for end in &lines {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("journal"), &whole[..end - 1]).unwrap();
        let mut graph = CodeGraph::open(dir.path(), worker()).unwrap();
        graph
            .edit(|program| {
                let has = |id| program.step(id).is_ok();
                let missing: Vec<_> = [("a", "xs = [1, 2]"), ("b", "n = len(xs)")]
                    .into_iter()
                    .filter(|(id, _)| !has(id))
                    .collect();
                push(program, &missing)
            })
            .unwrap();
        assert!(graph.replay().unwrap().ok());
        assert_eq!(shown(&mut graph, "n"), "2");
        assert!(graph.verify().unwrap().same);
        drop(graph);
        CodeGraph::open(dir.path(), Nowhere).unwrap();
    }
}

#[test]
fn a_flipped_bit_in_a_journal_is_reported() {
    let whole = journal();
    let dir = tempfile::tempdir().unwrap();
    let last = lines(&whole)[lines(&whole).len() - 2];
    for at in 0..whole.len() {
        // Flipping every bit would take long: all bits in the first line and in the last byte.
        let bits = if at < 64 || at + 1 == whole.len() { 0..8 } else { at % 8..at % 8 + 1 };
        for bit in bits {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << bit;
            match open(dir.path(), &flipped) {
                Err(error) => {
                    assert!(error.is_damaged(), "byte {at} bit {bit}: {error}");
                    // The file is left unchanged for a repair.
                    assert_eq!(fs::read(dir.path().join("journal")).unwrap(), flipped);
                }
                // The end of the last line completes the file.
                Ok(_) => {
                    assert_eq!(at + 1, whole.len(), "byte {at} bit {bit} went unnoticed");
                    let left = fs::metadata(dir.path().join("journal")).unwrap().len();
                    assert_eq!(left, last as u64);
                }
            }
        }
    }
}
