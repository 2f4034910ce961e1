//! What a graph survives: its worker or its host killed at any moment, damaged files, steps that
//! break what they can reach, and unusual sizes.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "survive/damage.rs"]
mod damage;
#[path = "survive/encrypted.rs"]
mod encrypted;
#[path = "survive/hosts.rs"]
mod hosts;
#[path = "survive/kept.rs"]
mod kept;
#[path = "survive/kills.rs"]
mod kills;
#[path = "survive/outside.rs"]
mod outside;
#[path = "survive/sizes.rs"]
mod sizes;
#[path = "survive/steps.rs"]
mod steps;
#[path = "survive/unseen.rs"]
mod unseen;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use harness_esg::{
    Blobs, CPython, CodeGraph, Edit, Limits, Program, ProgramError, Trust, WorkerProcess,
};

/// Every installed interpreter, one for each minor version.
fn interpreters() -> &'static [PathBuf] {
    static FOUND: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let (mut seen, mut paths) = (Vec::new(), Vec::new());
        for one in CPython::all() {
            if !seen.contains(&one.version()[1]) {
                seen.push(one.version()[1]);
                paths.push(one.path().to_owned());
            }
        }
        assert!(!paths.is_empty(), "no CPython from 3.11 to 3.13 in PATH");
        paths
    })
}

/// A worker of the `n`th interpreter.
fn worker_of(n: usize, wall: Duration) -> WorkerProcess {
    let limits = Limits { wall, address_space: 512 << 20, ..Limits::default() };
    CPython::at(&interpreters()[n]).limits(limits).trust(Trust::Mine).start().unwrap()
}

fn worker() -> WorkerProcess {
    worker_of(0, Duration::from_secs(30))
}

fn graph(steps: &[(&str, &str)]) -> CodeGraph {
    let mut graph = CodeGraph::new(Program::new(), worker(), Blobs::memory());
    graph.edit(|program| push(program, steps)).unwrap();
    graph
}

fn push(program: &mut Edit<'_>, steps: &[(&str, &str)]) -> Result<(), ProgramError> {
    steps.iter().try_for_each(|(id, source)| program.push(id, source).map(drop))
}

fn shown(graph: &mut CodeGraph, name: &str) -> String {
    graph.value(name).unwrap().repr
}
