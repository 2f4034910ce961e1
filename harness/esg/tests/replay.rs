//! Selective re-execution compared with full runs, in real workers.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "replay/artifacts.rs"]
mod artifacts;
#[path = "replay/cases.rs"]
mod cases;
#[path = "replay/diagnosis.rs"]
mod diagnosis;
#[path = "replay/edges.rs"]
mod edges;
#[path = "replay/engine.rs"]
mod engine;
#[path = "replay/field.rs"]
mod field;
#[path = "replay/graft.rs"]
mod graft;
#[path = "replay/local.rs"]
mod local;
#[path = "replay/plan.rs"]
mod plan;
#[path = "replay/rules.rs"]
mod rules;
#[path = "replay/trials.rs"]
mod trials;

use std::path::{Path, PathBuf};

use harness_esg::{Blobs, CPython, CodeGraph, Program, Trust, WorkerProcess};

/// Every Python that can run steps. There must be one.
fn pythons() -> Vec<PathBuf> {
    let mut found = CPython::all();
    // One for each version: many paths lead to the same.
    let mut versions = std::collections::BTreeSet::new();
    found.retain(|python| versions.insert(python.version()[1]));
    let mut minors: Vec<_> = found.iter().map(|python| python.version()[1]).collect();
    let mut paths: Vec<_> = found.iter().map(|python| python.path().to_owned()).collect();
    // Also those that are installed but not in PATH.
    let home = std::env::var_os("HOME").unwrap_or_default();
    let versions = std::fs::read_dir(PathBuf::from(home).join(".pyenv/versions"));
    let mut versions: Vec<_> =
        versions.into_iter().flatten().flatten().map(|one| one.path()).collect();
    versions.sort();
    for version in versions {
        let name = version.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for minor in 11..=13 {
            if name.starts_with(&format!("3.{minor}.")) && !minors.contains(&minor) {
                minors.push(minor);
                paths.push(version.join(format!("bin/python3.{minor}")));
            }
        }
    }
    assert!(!paths.is_empty(), "no Python of 3.11 to 3.13 is here: install one");
    paths
}

/// The Python of the virtual environment `HARNESS_VENV`, which has numpy, pandas, matplotlib,
/// scikit-learn and sympy. Without it the tests of programs with packages are left out, and say so, except where
/// everything is checked: `HARNESS_CHECK` is set there.
fn packages() -> Option<PathBuf> {
    let venv = std::env::var_os("HARNESS_VENV").filter(|venv| !venv.is_empty());
    let checked = std::env::var_os("HARNESS_CHECK").is_some();
    assert!(
        venv.is_some() || !checked,
        "`HARNESS_VENV` names no virtual environment [run .ci/test]"
    );
    if venv.is_none() {
        eprintln!("left out: `HARNESS_VENV` names no virtual environment");
    }
    Some(PathBuf::from(venv?).join("bin/python"))
}

fn worker(python: &Path) -> WorkerProcess {
    // A second process takes a third of the time of these tests. The tests in `survive` start one.
    CPython::at(python).spare(false).trust(Trust::Mine).start().unwrap()
}

fn graph(python: &Path, steps: &[(&str, &str)]) -> CodeGraph {
    let mut program = Program::new();
    for (id, source) in steps {
        program.push(id, source).unwrap();
    }
    CodeGraph::new(program, worker(python), Blobs::memory())
}
