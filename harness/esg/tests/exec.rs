//! The Python worker with its own program: what a step can do to it, and what it costs.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "exec/attacks.rs"]
mod attacks;
#[path = "exec/host.rs"]
mod host;
#[path = "exec/pace.rs"]
mod pace;
#[path = "exec/steps.rs"]
mod steps;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use harness_esg::{CPython, Executor, Limits, Ran, RunStep, Trust, WorkerProcess};

/// Every installed interpreter, one for each minor version.
fn interpreters() -> &'static [PathBuf] {
    static FOUND: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let all = CPython::all();
        assert!(!all.is_empty(), "no CPython from 3.11 to 3.13 in PATH");
        let mut seen = Vec::new();
        let first = all.iter().filter(|one| {
            let new = !seen.contains(&one.version()[1]);
            seen.push(one.version()[1]);
            new
        });
        first.map(|one| one.path().to_owned()).collect()
    })
}

fn builder() -> CPython {
    CPython::at(&interpreters()[0]).trust(Trust::Mine)
}

fn worker(wall: Duration) -> WorkerProcess {
    let limits = Limits { wall, address_space: 512 << 20, ..Limits::default() };
    builder().limits(limits).start().unwrap()
}

/// Runs a step. Numbers are unique in the process, and therefore in a worker.
fn run(python: &mut dyn Executor, source: &str) -> Ran {
    use std::sync::atomic::{AtomicU64, Ordering};
    static SEQ: AtomicU64 = AtomicU64::new(1);
    let seq = SEQ.fetch_add(1, Ordering::Relaxed);
    python.run(&RunStep { seq, step: "s", source, bind: None, readings: None }).unwrap()
}
