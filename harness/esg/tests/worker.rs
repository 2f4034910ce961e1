//! The worker's Python, tested in Python: every test file under `tests/worker` runs on every
//! CPython from 3.11 to 3.13 of this machine.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, thread};

/// The folders that may hold a Python: those of `PATH`, and those of pyenv's versions.
fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
    if let Some(home) = env::var_os("HOME") {
        let versions = fs::read_dir(Path::new(&home).join(".pyenv/versions"));
        let versions = versions.into_iter().flatten().flatten().map(|entry| entry.path());
        folders.extend(versions.map(|version| version.join("bin")));
    }
    folders
}

/// One interpreter for each version, by the version it reports.
fn pythons() -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for folder in folders() {
        for name in ["python3.11", "python3.12", "python3.13"] {
            let python = folder.join(name);
            let version = Command::new(&python)
                .args(["-I", "-S", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
                .output();
            let Ok(version) = version else { continue };
            let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
            if name.ends_with(&version) && !version.is_empty() {
                found.entry(version).or_insert(python);
            }
        }
    }
    found
}

#[test]
fn the_worker_passes_its_tests_on_every_python_found() {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/worker/run.py");
    let pythons = pythons();
    assert!(!pythons.is_empty(), "no CPython of 3.11 to 3.13 in PATH or ~/.pyenv [install one]");
    if env::var_os("HARNESS_CHECK").is_some() {
        // Where everything is checked, nothing may be left out.
        let venv = PathBuf::from(env::var_os("HARNESS_VENV").unwrap_or_default());
        let packages =
            |version: &String| venv.join(format!("lib/python{version}/site-packages/numpy"));
        let found = pythons.keys().any(|version| packages(version).exists());
        assert!(
            found,
            "`HARNESS_VENV` names no environment of one of these Pythons [run .ci/test]"
        );
    }
    let failed: Vec<String> = thread::scope(|scope| {
        let runs: Vec<_> = pythons
            .iter()
            .map(|(version, python)| {
                let run = &run;
                scope.spawn(move || {
                    // As a worker is started: sets must be ordered the same in every process.
                    let output = Command::new(python)
                        .args(["-s", "-P", "-S", "-B"])
                        .arg(run)
                        .env("PYTHONHASHSEED", "0")
                        .output()
                        .unwrap();
                    let text = String::from_utf8_lossy(&output.stderr).into_owned()
                        + &String::from_utf8_lossy(&output.stdout);
                    (!output.status.success())
                        .then(|| format!("on Python {version} ({}):\n{text}", python.display()))
                })
            })
            .collect();
        runs.into_iter().filter_map(|run| run.join().unwrap()).collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
