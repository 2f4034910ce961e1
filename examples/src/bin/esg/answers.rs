//! `esg answers`: answers to files of cases, as JSON.

use std::path::Path;

use harness::esg::{Blobs, CodeGraph, Program, scan};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Options, Result, read, warn, worker};

#[derive(Deserialize)]
struct Steps {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    id: String,
    source: String,
}

#[derive(Deserialize)]
struct Programs {
    programs: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    steps: Vec<Case>,
    edits: Vec<Edit>,
}

#[derive(Deserialize)]
struct Edit {
    step: String,
    kind: String,
    new_source: Option<String>,
}

/// For each step, what it reads and writes.
pub(super) fn vectors(file: &Path) -> Result<u8> {
    let steps: Steps = serde_json::from_str(&read(file)?)?;
    let mut answers = Map::new();
    for case in steps.cases {
        let scan = scan(&case.source);
        let answer = match scan.errors.first() {
            Some(error) => json!({"error": error.message}),
            None => json!({
                "reads": scan.reads,
                "deferred_reads": scan.deferred_reads,
                "writes": scan.writes,
                "mutates": scan.mutates,
                "deletes": scan.deletes,
                "opaque": scan.opaque,
            }),
        };
        answers.insert(case.id, answer);
    }
    println!("{}", Value::Object(answers));
    Ok(0)
}

/// For each program its edges, and for each edit the steps that ran. Every edit is made to a fresh
/// copy of the program after its first run, and compared with a full run.
pub(super) fn edges(options: &Options, file: &Path) -> Result<u8> {
    warn(options);
    let programs: Programs = serde_json::from_str(&read(file)?)?;
    let (mut answers, mut mismatches) = (Map::new(), 0);
    for entry in &programs.programs {
        let graph = ran(options, entry)?;
        let edges: Vec<_> =
            graph.traced_edges().map(|edge| json!([&*edge.from, &*edge.to])).collect();
        let mut edits = Vec::new();
        for (at, edit) in entry.edits.iter().enumerate() {
            let mut graph = ran(options, entry)?;
            match &edit.new_source {
                Some(source) if edit.kind == "replace" => {
                    graph.edit(|program| program.replace(&edit.step, source))?;
                }
                _ => graph.edit(|program| program.remove(&edit.step))?,
            }
            let report = graph.replay()?;
            let executed: Vec<_> = report.executed().map(ToString::to_string).collect();
            let verdict = graph.verify()?;
            if !verdict.same {
                mismatches += 1;
                eprintln!("{} edit {at} of {}: {verdict}", entry.id, edit.step);
            }
            for (step, untracked) in &report.untracked {
                eprintln!("{} edit {at}: {step} is untracked: {untracked}", entry.id);
            }
            edits.push(json!(executed));
        }
        answers.insert(entry.id.clone(), json!({"edges": edges, "edits": edits}));
    }
    println!("{}", Value::Object(answers));
    eprintln!("state mismatches: {mismatches}");
    Ok(u8::from(mismatches > 0))
}

/// The program, after its first run.
fn ran(options: &Options, entry: &Entry) -> Result<CodeGraph> {
    let mut program = Program::new();
    for step in &entry.steps {
        program.push(&step.id, &step.source)?;
    }
    let mut graph = CodeGraph::new(program, worker(options)?, Blobs::memory());
    graph.replay()?;
    Ok(graph)
}
