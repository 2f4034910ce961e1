//! Selective re-execution against running everything, in real workers.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "esg_replay/edges.rs"]
mod edges;
#[path = "esg_replay/engine.rs"]
mod engine;

use harness::esg::blobs::Blobs;
use harness::esg::{CPython, CodeGraph, Interpreter, Program, Python, Trust};

/// Every Python that steps can run in. There must be one.
fn pythons() -> Vec<Interpreter> {
    let mut all = CPython::all();
    // Also those that are installed beside each other and not in PATH.
    if let Some(home) = std::env::var_os("HOME") {
        let versions = std::path::Path::new(&home).join(".pyenv/versions");
        for entry in std::fs::read_dir(versions).into_iter().flatten().flatten() {
            let path = entry.path().join("bin/python3");
            if let Ok(found) = Interpreter::at(&path)
                && all.iter().all(|known| known.version() != found.version())
            {
                all.push(found);
            }
        }
    }
    assert!(!all.is_empty(), "no Python of 3.11 to 3.13 is here: install one");
    all
}

fn worker(python: &Interpreter) -> Python {
    CPython::at(python.path()).trust(Trust::Mine).start().unwrap()
}

fn graph(python: &Interpreter, steps: &[(&str, &str)]) -> CodeGraph {
    let mut program = Program::new();
    for (id, source) in steps {
        program.push(id, source).unwrap();
    }
    CodeGraph::new(program, worker(python), Blobs::memory())
}
