//! Imports inside the crate go one way. Reads the sources and fails when a module names one above it,
//! or when files import each other in a circle.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "layers/circles.rs"]
mod circles;
#[path = "../../tests/layers/docs.rs"]
mod docs;
#[path = "../../tests/layers/imports.rs"]
mod imports;

use std::path::{Path, PathBuf};
use std::{fs, io};

/// The modules, from the bottom. A module names itself and modules of earlier rows; modules of one row
/// do not name each other.
const LAYERS: &[&[&str]] = &[
    &["cipher", "model", "scan", "text"],
    &["exec", "program"],
    &["blobs"],
    &["state"],
    &["trace"],
    &["ledger"],
    &["error"],
    &["replay"],
    &["graph"],
    &["diagnosis"],
    &["patcher"],
    // The facade: names everything, and nothing names it.
    &["testing"],
    &["lib"],
];

/// The Rust files of the crate with their paths below `src`, without those compiled for tests only.
fn sources() -> Vec<(PathBuf, String)> {
    fn below(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                below(&path, found)?;
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
        Ok(())
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    below(&root, &mut found).unwrap();
    found.sort();
    found
        .into_iter()
        .map(|path| {
            (path.strip_prefix(&root).unwrap().to_owned(), fs::read_to_string(&path).unwrap())
        })
        .filter(|(path, _)| !path.iter().any(|part| part == "tests" || part == "tests.rs"))
        .collect()
}

fn check(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn imports_go_down() {
    let files = sources();
    assert!(files.len() > 50, "the sources are elsewhere");
    let faults: Vec<String> =
        files.iter().flat_map(|(path, text)| imports::faults(LAYERS, path, text)).collect();
    check(&faults);
}

#[test]
fn files_do_not_import_each_other_in_a_circle() {
    check(&circles::faults(&sources()));
}

#[test]
fn everything_public_is_documented() {
    let faults: Vec<String> = sources()
        .iter()
        .flat_map(|(path, text)| {
            docs::faults(text).into_iter().map(move |fault| format!("{}: {fault}", path.display()))
        })
        .collect();
    check(&faults);
}

#[test]
fn the_protocol_host_knows_no_language() {
    let host = sources().into_iter().filter(|(path, _)| path.starts_with("exec/host"));
    let files: Vec<_> = host.collect();
    assert!(files.len() > 5, "the host is elsewhere");
    for (path, text) in files {
        let named = text.lines().find(|line| line.to_lowercase().contains("python"));
        assert!(named.is_none(), "{}: {named:?}", path.display());
    }
}
