//! Text pipelines that a file describes: a loop made at run time, of steps from a registry.

mod describe;
mod fields;
mod parameters;
mod problems;
mod step;
mod steps;
mod tree;

use std::fmt::Write as _;

use harness::Outcome;
use harness::observe::Recorder;
use harness::prelude::*;

pub use describe::Pipeline;
pub use problems::{Problems, Unreadable};
pub use steps::{Room, Text};

/// How a pipeline ran.
#[derive(Debug)]
pub struct Ran {
    /// The lines that are left, or where they were written. An error when the pipeline did not come
    /// to its end: a step failed, or the budget is spent.
    pub output: Result<String, String>,
    /// The steps in the order in which they were started.
    pub path: Vec<String>,
}

/// Runs a pipeline on its input, in at most `budget` steps.
pub async fn run(harness: &Harness<Room, Text>, budget: u64) -> Ran {
    let seen = Recorder::default();
    let agent = harness.agent("pipeline", ()).observe(seen.clone());
    let output = match agent.run(Text::update(), ()).await {
        Ok(outcome) => told(outcome, budget),
        Err(error) => Err(error.to_string()),
    };
    Ran { output, path: seen.started() }
}

fn told(outcome: Outcome<Text>, budget: u64) -> Result<String, String> {
    if let Outcome::Exhausted(spent) = &outcome {
        return Err(format!(
            "the pipeline did not come to its end within its {} of {budget} (raise `budget` in its \
             description, or lead out of the cycle that it runs in; `--trace` shows the path)",
            spent.limit
        ));
    }
    let text = outcome.ended().map_err(|error| error.to_string())?.state;
    let mut out = String::new();
    for file in &text.written {
        // Writing into a string cannot fail.
        let _ = writeln!(out, "wrote {file}");
    }
    if text.written.is_empty() {
        for line in &text.lines {
            out.push_str(line);
            out.push('\n');
        }
    }
    Ok(out)
}
