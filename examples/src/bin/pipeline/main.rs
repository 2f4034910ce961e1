//! Runs a text pipeline that a file describes: a loop built at run time, of steps and routes from a
//! registry.
//!
//! ```text
//! cargo run -p examples --bin pipeline -- examples/pipelines/unique.toml
//! cargo run -p examples --bin pipeline -- --draw examples/pipelines/words.toml     # Mermaid
//! cargo run -p examples --bin pipeline -- --trace --dot examples/pipelines/unique.toml
//! cargo run -p examples --bin pipeline -- --input input/more.txt=- \
//!     examples/pipelines/unique.toml < README.md
//! ```
//!
//! The description lists the steps: what each runs, with which parameters, and which step follows.
//! Every problem of a description is reported at once. See `examples/pipelines`.

mod describe;
mod fields;
mod parameters;
mod problems;
mod step;
mod steps;
#[cfg(test)]
mod tests;
mod tree;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use harness::observe::Recorder;
use harness::prelude::*;

use describe::Pipeline;
use steps::{Ctx, Text};

#[derive(Parser)]
#[command(about = "Runs a text pipeline that a file describes")]
struct Options {
    /// Draws the pipeline instead of running it, as a Mermaid diagram.
    #[arg(long, conflicts_with = "trace")]
    draw: bool,
    /// Runs the pipeline, then draws it with the path of the run marked. The drawing goes to
    /// standard output, the pipeline's output to standard error.
    #[arg(long)]
    trace: bool,
    /// Draws in the language of Graphviz. Runs nothing without `--trace`.
    #[arg(long)]
    dot: bool,
    /// Reads FILE where a step reads NAME; `-` is standard input.
    #[arg(long, value_name = "NAME=FILE", value_parser = input)]
    input: Vec<(String, PathBuf)>,
    /// The folder that steps write their files into.
    #[arg(long, default_value = ".")]
    out: PathBuf,
    /// The description: TOML, or JSON if it ends in `.json`.
    file: PathBuf,
}

#[tokio::main]
async fn main() -> ExitCode {
    match work(&Options::parse()).await {
        Ok(code) => code,
        Err(problem) => {
            anstream::eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

async fn work(options: &Options) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut pipeline = Pipeline::read(&options.file)?;
    for (name, file) in &options.input {
        pipeline = pipeline.feed(name, file.clone());
    }
    let folder = options.file.parent().unwrap_or(Path::new("")).to_owned();
    let budget = pipeline.budget();
    let harness = pipeline.build(folder, options.out.clone())?;
    let drawing = harness.graph().drawing();
    let drawn = |drawing: &harness::graph::Drawing| match options.dot {
        true => drawing.to_dot(),
        false => drawing.to_mermaid(),
    };
    if !options.trace && (options.draw || options.dot) {
        return Ok(print(&drawn(&drawing)));
    }
    let ran = run(&harness, budget).await;
    if !options.trace {
        return Ok(print(&ran.output?));
    }
    // A failed run is drawn too: its path shows how far it got.
    let code = print(&drawn(&drawing.mark(&ran.path)));
    match ran.output {
        Ok(text) => {
            anstream::eprint!("{text}");
            Ok(code)
        }
        Err(problem) => Err(problem.into()),
    }
}

/// How a pipeline ran.
#[derive(Debug)]
struct Ran {
    /// The lines at the end, or the files that were written. An error if the run did not end: a step
    /// failed, or the budget is exhausted.
    output: Result<String, String>,
    /// The steps, in the order in which they started.
    path: Vec<String>,
}

/// Runs a pipeline on its input, in at most `budget` steps.
async fn run(harness: &Harness<Ctx, Text>, budget: u64) -> Ran {
    let recorder = Recorder::default();
    let agent = harness.agent("pipeline", ()).observe(recorder.clone());
    let output = match agent.run(Text::update(), ()).await {
        Ok(outcome) => output(outcome, budget),
        Err(error) => Err(error.to_string()),
    };
    Ran { output, path: recorder.started() }
}

fn output(outcome: Outcome<Text>, budget: u64) -> Result<String, String> {
    if let Outcome::Exhausted(exhausted) = &outcome {
        return Err(format!(
            "the pipeline exhausted its {} of {budget} (raise `budget` in its description, or give \
             the cycle a way out; `--trace` shows the path)",
            exhausted.limit
        ));
    }
    let text = outcome.ended().map_err(|error| error.to_string())?.state;
    let mut out = String::new();
    for file in &text.written {
        // Writing to a string does not fail.
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

/// A closed output is no panic, only an exit code: `pipeline .. | head`.
fn print(text: &str) -> ExitCode {
    let written = anstream::stdout().write_all(text.as_bytes());
    ExitCode::from(u8::from(written.is_err()))
}

fn input(given: &str) -> Result<(String, PathBuf), String> {
    let (name, file) = given.split_once('=').ok_or("expected NAME=FILE")?;
    Ok((name.to_owned(), PathBuf::from(file)))
}
