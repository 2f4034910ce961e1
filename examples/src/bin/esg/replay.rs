//! `esg run`: runs a program, edits it, and replays it.

use std::fs;
use std::path::Path;

use harness::esg::{Blobs, CodeGraph, Report};

use super::{Options, Result, program, warn, worker};

pub(super) fn run(
    options: &Options,
    file: &Path,
    edits: &[String],
    verify: bool,
    store: Option<&Path>,
) -> Result<u8> {
    let program = program(file)?;
    warn(options);
    let mut graph = match store {
        Some(dir) => {
            let mut graph = CodeGraph::open(dir, worker(options)?)?;
            graph.edit(|kept| kept.follow(&program))?;
            graph
        }
        None => CodeGraph::new(program, worker(options)?, Blobs::memory()),
    };
    let mut report = graph.replay()?;
    print(&graph, &report);
    for edit in edits {
        let (step, file) = edit
            .split_once('=')
            .ok_or_else(|| format!("`{edit}` is no edit (expected STEP=FILE)"))?;
        let source = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        graph.edit(|program| program.replace(step, &source))?;
        println!("\nafter the edit of {step}:");
        report = graph.replay()?;
        print(&graph, &report);
    }
    if verify {
        let verdict = graph.verify()?;
        println!("{verdict}");
        if !verdict.same {
            return Ok(1);
        }
    }
    Ok(u8::from(!report.ok()))
}

fn print(graph: &CodeGraph, report: &Report) {
    print!("{report}");
    for step in report.executed() {
        let Some(execution) = graph.execution(step) else { continue };
        for line in String::from_utf8_lossy(&execution.stdout.bytes).lines() {
            println!("  {step} | {line}");
        }
    }
}
