//! Programs from outside: with a journal, a script and a run.
//!
//! `program/edges.json`: small programs with the reads and changes of each step as CPython ran it,
//! and the resulting edges, computed by another program and checked by hand.
#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use harness_esg::{Blobs, EdgeSource, Entity, Observed, Operation, Program, Scan};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Case {
    id: String,
    steps: Vec<String>,
    sources: Vec<String>,
    reads: BTreeMap<String, BTreeSet<String>>,
    wrote: BTreeMap<String, BTreeSet<String>>,
    edges: BTreeSet<(String, String, String)>,
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("program/edges.json")).unwrap()
}

impl Case {
    fn names(&self, of: &BTreeMap<String, BTreeSet<String>>, step: &str) -> BTreeSet<String> {
        let names = of.get(step).into_iter().flatten();
        names.filter(|name| !name.contains(':')).cloned().collect()
    }

    fn observed(&self, step: &str) -> Observed {
        let entities = |of| {
            let names: BTreeSet<String> = self.names(of, step);
            names.into_iter().map(|name| match name.as_str() {
                "*" => Entity::Everything,
                name => Entity::name(name),
            })
        };
        Observed::new(entities(&self.reads), entities(&self.wrote))
    }
}

fn flows(program: &Program) -> BTreeSet<(String, String, String)> {
    let edges = program.edges().iter().flat_map(|edge| {
        let (producer, reader) = (edge.producer.to_string(), edge.reader.to_string());
        let names = edge.channels.into_iter().map(|channel| match channel {
            Entity::Everything => "*".to_owned(),
            other => other.as_name().unwrap().to_owned(),
        });
        names.map(move |name| (producer.clone(), reader.clone(), name))
    });
    edges.collect()
}

#[test]
fn edges_of_what_was_seen_are_those_of_the_run() {
    let mut compared = 0;
    for case in cases() {
        let everything = case.reads.values().flatten().any(|name| name == "*");
        let mut program = Program::new();
        for (id, source) in case.steps.iter().zip(&case.sources) {
            program.push(id, source).unwrap();
        }
        // Once the index exists, each run updates it.
        let _ = program.edges();
        for id in &case.steps {
            program.observe(id, case.observed(id)).unwrap();
        }
        assert!(program.edges().iter().all(|edge| edge.source == EdgeSource::Traced));
        if !everything {
            compared += 1;
            assert_eq!(flows(&program), case.edges, "{}", case.id);
        }
    }
    assert!(compared > 25, "{compared}");
}

/// A scan may find more than a run shows, but not less: it misses no edge of the run.
#[test]
fn edges_of_scans_miss_none_of_the_run() {
    for case in cases() {
        let mut program = Program::new();
        for id in &case.steps {
            let mut scan = Scan::default();
            let mut reads = case.names(&case.reads, id);
            scan.opaque = reads.remove("*");
            scan.reads = reads.iter().collect();
            scan.writes = case.names(&case.wrote, id).iter().collect();
            program.push_scanned(id, id, scan).unwrap();
        }
        let found = flows(&program);
        let known = |edge: &&(String, String, String)| {
            let any = (edge.0.clone(), edge.1.clone(), "*".to_owned());
            !found.contains(*edge) && !found.contains(&any)
        };
        let missed: Vec<_> = case.edges.iter().filter(known).collect();
        assert!(missed.is_empty(), "{}: {missed:?}", case.id);
    }
}

#[test]
fn a_program_replays_from_a_journal() {
    let mut program =
        Program::from_script("# %% load\nrows = [1]\n# %% clean\nrows = rows[1:]\n").unwrap();
    program.input("limit", json!({"most": 1.5})).unwrap();
    let mark = program.mark();
    let first = program.step("clean").unwrap().version;
    program.replace("clean", "rows = rows[:limit]").unwrap();
    program.rollback(first).unwrap();
    let kept = serde_json::to_vec(program.operations(0)).unwrap();
    let stored: Vec<Operation> = serde_json::from_slice(&kept).unwrap();
    assert_eq!(stored[mark..], *program.operations(mark));
    let again = Program::fold(stored).unwrap();
    assert_eq!(again, program);
    assert_eq!(again.to_script().unwrap(), program.to_script().unwrap());
    assert_eq!(again.versions().len(), 4);
}

#[test]
fn sources_can_be_kept_as_blobs() {
    let dir = tempfile::tempdir().unwrap();
    let source = "x = 1\n".repeat(100);
    let stored = {
        let blobs = Blobs::dir(dir.path()).unwrap();
        let stored = blobs.store(source.as_bytes()).unwrap();
        blobs.flush().unwrap();
        serde_json::to_string(&stored).unwrap()
    };
    let blobs = Blobs::dir(dir.path()).unwrap();
    let found = blobs.load(&serde_json::from_str(&stored).unwrap()).unwrap();
    assert_eq!(found.as_deref(), Some(source.as_bytes()));
}
