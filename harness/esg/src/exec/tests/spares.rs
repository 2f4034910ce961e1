//! Workers that are started before they are needed.
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::{Ending, Executor, Sync};
use super::{builder, hasty, limits, pid, run, runs, step, until, worker, works_afresh};

/// Where the spare of a worker with this scratch works.
fn place(scratch: &Path) -> PathBuf {
    scratch.with_file_name("next")
}

/// The process that works in a directory.
fn working_in(folder: &Path) -> Option<u64> {
    let inside = |pid: &u64| {
        fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|at| at == folder) && runs(*pid)
    };
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(inside)
}

/// The process that waits to take the place of the worker with this scratch.
pub(super) fn spare(scratch: &Path) -> u64 {
    let folder = place(scratch);
    until("the spare", || working_in(&folder).is_some());
    working_in(&folder).unwrap()
}

#[test]
fn the_process_that_waits_takes_the_place_of_one_that_is_given_up() {
    let mut python = worker();
    assert!(!place(&python.scratch()).exists(), "before the first step");
    let source = "import os\nmark = 1\nopen('mine', 'w').close()\nplace = os.getcwd()";
    for _ in 0..3 {
        assert_eq!(run(&mut python, source).ending, Ending::Ok);
        let (first, waiting) = (pid(&mut python), spare(&python.scratch()));
        assert_ne!(first, waiting);
        python.fresh().unwrap();
        assert!(!runs(first));
        assert!(!place(&python.scratch()).exists(), "it is in use");
        works_afresh(&mut python);
        assert_eq!(pid(&mut python), waiting);
        run(&mut python, "place = os.getcwd()");
        let place = python.value("place").unwrap().json.unwrap();
        assert_eq!(place, python.scratch().to_str().unwrap());
    }
}

#[test]
fn it_takes_the_place_of_one_that_a_step_ended() {
    let mut python = hasty();
    run(&mut python, "mark = 1");
    let waiting = spare(&python.scratch());
    assert!(run(&mut python, "while True: pass").lost);
    works_afresh(&mut python);
    assert_eq!(pid(&mut python), waiting);
    // From now on it is the one that a handle kills.
    python.kill_handle().kill();
    until("its end", || !runs(waiting));
    assert!(python.run(&step("pass")).unwrap_err().lost());
    works_afresh(&mut python);
}

#[test]
fn without_it_a_worker_starts_as_the_first_did() {
    let mut python = worker();
    run(&mut python, "mark = 1");
    let waiting = spare(&python.scratch());
    let killed = rustix::process::Pid::from_raw(i32::try_from(waiting).unwrap()).unwrap();
    rustix::process::kill_process(killed, rustix::process::Signal::KILL).unwrap();
    python.fresh().unwrap();
    // Neither its directory nor its entry in the table of processes is left.
    assert!(!place(&python.scratch()).exists());
    assert!(!Path::new(&format!("/proc/{waiting}")).exists());
    works_afresh(&mut python);
    assert_ne!(pid(&mut python), waiting);
    // The next one is started after a step, as before.
    let (scratch, waiting) = (python.scratch(), spare(&python.scratch()));
    drop(python);
    assert!(!runs(waiting));
    assert!(!scratch.parent().unwrap().exists());

    let limits = limits(Duration::from_secs(20));
    let mut python = builder().limits(limits).spare(false).start().unwrap();
    run(&mut python, "mark = 1");
    assert!(!place(&python.scratch()).exists());
    python.fresh().unwrap();
    works_afresh(&mut python);
}

#[test]
fn it_ends_with_the_worker_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut python = builder().scratch(dir.path()).start().unwrap();
    run(&mut python, "open('mine', 'w').close()");
    let waiting = spare(&python.scratch());
    // A twin has its own process, at the path.
    let mut twin = python.twin().unwrap();
    run(&mut *twin, "import os\nassert os.listdir() == []");
    assert_eq!(working_in(&place(&python.scratch())), Some(waiting));
    drop(twin);
    python.sync(&Sync::default()).unwrap();
    drop(python);
    assert!(!runs(waiting));
    let names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["lock", "work"]);
}
