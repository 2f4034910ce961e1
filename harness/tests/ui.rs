//! Compile errors: one rule per file.
#![allow(missing_docs, clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn ui() {
    trybuild::TestCases::new().compile_fail("tests/ui/*/*.rs");
}

/// Every message names the user's items and the remedy, and none shows the internals of the
/// derives.
///
/// A case states what its message must contain in comments: ``//@ names: `turns`, `Chat` `` and
/// `//@ remedy: text`. With `//@ lines: 20` the message must be as short as that.
#[test]
fn ui_messages() {
    const PRIVATE: &[&str] = &["__private", "_macros::", "::encode::", "::reduce::"];
    let mut faults = Vec::new();
    let mut cases = 0;
    for case in cases_in(Path::new("tests/ui")) {
        cases += 1;
        let source = fs::read_to_string(&case).unwrap();
        let message = fs::read_to_string(case.with_extension("stderr")).unwrap_or_default();
        // This comes from the user's own `derive(Deserialize)`.
        let message = message.replace("_serde::__private", "_serde::");
        let mut fault = |text: String| faults.push(format!("{}: {text}", case.display()));

        let wanted = |key: &str| source.lines().find_map(|line| line.strip_prefix(key));
        match wanted("//@ names: ") {
            None => fault("has no line `//@ names:`".to_owned()),
            Some(names) => names
                .split(", ")
                .filter(|name| !message.contains(name.trim_matches('`')))
                .for_each(|name| fault(format!("does not name {name}"))),
        }
        match wanted("//@ remedy: ") {
            None => fault("has no line `//@ remedy:`".to_owned()),
            Some(remedy) if !message.contains(remedy) => fault(format!("does not say: {remedy}")),
            Some(_) => {}
        }
        let most = wanted("//@ lines: ").map_or(usize::MAX, |most| most.parse().unwrap());
        if message.lines().count() > most {
            fault(format!("is longer than {most} lines"));
        }
        PRIVATE
            .iter()
            .filter(|private| message.contains(**private))
            .for_each(|private| fault(format!("shows {private}")));
    }
    assert!(cases > 0, "no cases found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn cases_in(folder: &Path) -> Vec<PathBuf> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            cases.extend(cases_in(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            cases.push(path);
        }
    }
    cases.sort();
    cases
}
