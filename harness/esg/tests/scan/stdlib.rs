//! The standard library of the Python on this machine, against CPython's own symbol tables.
use std::collections::BTreeSet;
use std::process::Command;

use harness_esg::scan;
use serde_json::Value;

/// Compares every second file. `HARNESS_STDLIB=1` compares all, which takes twice as long.
const SAMPLE: &str = "2";

/// Names that the symbol tables report although they are not loads, each with its file.
const NO_LOADS: &[(&str, &str)] = &[
    // The tables take every scope called `top` for the module's, and its variables for globals.
    ("poplib.py", "howmuch"),
    ("poplib.py", "self"),
    ("poplib.py", "which"),
    // Annotations of a function's variables are never evaluated.
    ("importlib/resources/_itertools.py", "Set"),
    ("importlib/resources/_itertools.py", "Union"),
];

fn names(value: &Value) -> BTreeSet<String> {
    value.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// CPython's tables, one file a line.
fn facts() -> Vec<Value> {
    let sample = std::env::var("HARNESS_STDLIB").unwrap_or_else(|_| SAMPLE.to_owned());
    let output = Command::new("python3")
        .args(["-I", "-c", include_str!("facts.py"), &sample])
        .output()
        .expect("this test compares with CPython: put a `python3` of 3.11 or newer on the path");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "python3 could not read its standard library: {errors}");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn nothing_is_missed_that_the_symbol_tables_of_cpython_know() {
    let facts = facts();
    assert!(
        facts.len() >= 100,
        "only {} files: this test needs a Python whose standard library is installed as source",
        facts.len()
    );
    let (mut wrong, mut writes, mut reads, mut inner, mut extra) = (Vec::new(), 0, 0, 0, 0);
    for fact in &facts {
        let path = fact[0].as_str().unwrap();
        let excused = |name: &str| NO_LOADS.contains(&(path, name));
        let found = scan(fact[1].as_str().unwrap());
        if !found.errors.is_empty() {
            wrong.push(format!("{path}: refused: {:?}", found.errors));
            continue;
        }
        let bound = found.writes.iter().chain(&found.deferred_writes).chain(&found.deletes);
        let bound: BTreeSet<&str> = bound.collect();
        for name in names(&fact[2]) {
            writes += 1;
            if !bound.contains(&*name) {
                wrong.push(format!("{path}: `{name}` is bound"));
            }
        }
        let read = found.reads.iter().chain(&found.deferred_reads).chain(&found.builtin_reads);
        let read: BTreeSet<&str> = read.collect();
        for name in names(&fact[3]) {
            reads += 1;
            if !read.contains(&*name) && !excused(&name) {
                wrong.push(format!("{path}: `{name}` is read"));
            }
        }
        for one in fact[4].as_array().unwrap() {
            let (name, line) = (one[0].as_str().unwrap(), one[1].as_u64().unwrap());
            let line = usize::try_from(line).unwrap();
            let definition =
                found.definitions.iter().find(|one| one.name == name && one.lines.contains(&line));
            // A definition in a branch is not top-level.
            let Some(definition) = definition else {
                continue;
            };
            let expected = names(&one[2]);
            inner += expected.len();
            let references = super::cases::own(&definition.references);
            extra += references.difference(&expected).count();
            let missed = expected.difference(&references);
            for missed in missed.filter(|name| !excused(name)) {
                wrong.push(format!("{path}:{line}: `{missed}` is read in `{name}`"));
            }
        }
    }
    println!(
        "{} files: {writes} names bound, {reads} read, {inner} read in definitions; {extra} more \
         are reported of definitions (decorators, defaults, bases)",
        facts.len()
    );
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}
