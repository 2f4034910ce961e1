//! `esg plan`: the steps of a program and their edges, without running it.

use std::fmt::Write as _;
use std::path::Path;

use harness::esg::{Program, Step};

use super::{Result, program};

pub(super) fn plan(file: &Path) -> Result<u8> {
    let program = program(file)?;
    print!("{}", shown(&program));
    Ok(0)
}

/// The steps, the edges that follow from their sources, and a drawing.
fn shown(program: &Program) -> String {
    let edges = program.edges();
    let mut text = String::from("steps:\n");
    for (at, step) in program.steps().enumerate() {
        let _ = writeln!(text, "{:>4}  {}{}", at + 1, step.id, remark(step));
    }
    text.push_str("\nedges:\n");
    let mut none = true;
    for edge in edges.iter() {
        none = false;
        let _ = writeln!(text, "  {edge}");
    }
    if none {
        text.push_str("  none\n");
    }
    let _ = write!(text, "\ndrawing (Mermaid):\n{}", edges.to_mermaid());
    text
}

/// A remark on a step whose edges may be wrong or too many.
fn remark(step: &Step) -> String {
    match step.scan.errors.first() {
        Some(error) => format!(" (line {}: {})", error.line, error.message),
        None if step.scan.opaque => " (may use any name)".to_owned(),
        None => String::new(),
    }
}
