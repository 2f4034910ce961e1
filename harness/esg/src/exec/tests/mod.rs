//! Workers that break down, lie and die. They run a program of the tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod frames;
mod hostile;
mod lifetime;
mod moves;
mod replies;
#[cfg(target_os = "linux")]
mod spares;
mod starts;
mod twins;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use super::{CPython, Ending, Executor, Limits, Ran, RunStep, Trust, WorkerProcess};

const FAKE: &str = include_str!("../../../tests/exec/fake_worker.py");

/// An interpreter, looked for once.
fn interpreter() -> PathBuf {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    let all = || CPython::all().first().expect("a CPython from 3.11 to 3.13").path().to_owned();
    FOUND.get_or_init(all).clone()
}

fn builder() -> CPython {
    CPython::at(interpreter()).trust(Trust::Mine).speaking(FAKE, &[])
}

fn limits(wall: Duration) -> Limits {
    Limits { wall, address_space: 512 << 20, service: Duration::from_secs(20), ..Limits::default() }
}

fn worker() -> WorkerProcess {
    builder().limits(limits(Duration::from_secs(20))).start().unwrap()
}

/// A worker with little time for a step.
fn hasty() -> WorkerProcess {
    builder().limits(limits(Duration::from_millis(300))).start().unwrap()
}

fn step(source: &str) -> RunStep<'_> {
    RunStep { seq: 1, step: "s", source, bind: None, readings: None }
}

fn run(python: &mut dyn Executor, source: &str) -> Ran {
    python.run(&step(source)).unwrap()
}

/// Asserts that a fresh worker took over, without anything of the former one.
fn works_afresh(python: &mut WorkerProcess) {
    let ran = run(python, "import os\nassert 'mark' not in globals()\nassert os.listdir() == []");
    assert_eq!(ran.ending, Ending::Ok);
    assert!(!ran.lost);
}

/// The id of its process.
fn pid(python: &mut dyn Executor) -> u64 {
    run(python, "import os\npid = os.getpid()");
    python.value("pid").unwrap().json.unwrap().as_u64().unwrap()
}

/// Whether the process is running, and not a zombie.
fn runs(pid: u64) -> bool {
    if cfg!(target_os = "linux") {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        return stat
            .rsplit(") ")
            .next()
            .is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'));
    }
    rustix::process::Pid::from_raw(i32::try_from(pid).unwrap())
        .is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

/// Polls until the condition holds, and fails if that takes too long.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}: not within 20 s");
        std::thread::yield_now();
    }
}
