//! Text pipelines that a file describes: a loop made at run time, of steps from a registry.

mod describe;
mod steps;

use harness::prelude::*;

pub use describe::{Pipeline, Problems, Unreadable};
pub use steps::{Room, Text};

/// Runs a pipeline on its input. What comes out are the lines that are left, or where they were
/// written.
///
/// # Errors
/// When the pipeline does not come to its end: a step failed, or the budget is spent.
pub async fn run(harness: &Harness<Room, Text>) -> Result<String, Box<dyn std::error::Error>> {
    let outcome = harness.agent("pipeline", ()).run(Text::update(), ()).await?;
    let text = outcome.ended()?.state;
    let mut out = String::new();
    for file in &text.written {
        out.push_str(&format!("wrote {file}\n"));
    }
    if text.written.is_empty() {
        for line in &text.lines {
            out.push_str(line);
            out.push('\n');
        }
    }
    Ok(out)
}
