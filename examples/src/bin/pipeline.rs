//! Runs a text pipeline that a file describes.
//!
//! ```text
//! cargo run -p examples --bin pipeline -- [--draw | --trace] [--dot] \
//!     [--input NAME=FILE].. [--out FOLDER] FILE.toml
//! ```
//!
//! The description names the steps, what each runs with which parameters, and where the pipeline
//! goes from it. What is wrong with it is told at once. See `examples/pipelines`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use examples::pipeline::{Pipeline, run};

#[derive(Parser)]
#[command(about = "Runs a text pipeline that a file describes")]
struct Options {
    /// Draws the pipeline instead of running it, as a Mermaid diagram.
    #[arg(long, conflicts_with = "trace")]
    draw: bool,
    /// Runs the pipeline, then draws it with the path of the run marked. The drawing goes to the
    /// standard output, what the pipeline says to the standard error.
    #[arg(long)]
    trace: bool,
    /// Draws in the language of Graphviz. Without `--trace` nothing is run.
    #[arg(long)]
    dot: bool,
    /// Reads FILE where a step reads NAME; `-` is the standard input.
    #[arg(long, value_name = "NAME=FILE", value_parser = named)]
    input: Vec<(String, PathBuf)>,
    /// Where steps write their files.
    #[arg(long, default_value = ".")]
    out: PathBuf,
    /// The description: TOML, or JSON if it ends in `.json`.
    file: PathBuf,
}

fn named(given: &str) -> Result<(String, PathBuf), String> {
    let (name, file) = given.split_once('=').ok_or("expected NAME=FILE")?;
    Ok((name.to_owned(), PathBuf::from(file)))
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
    // A run that failed is drawn too: its path says how far it came.
    let code = print(&drawn(&drawing.mark(&ran.path)));
    match ran.output {
        Ok(text) => {
            anstream::eprint!("{text}");
            Ok(code)
        }
        Err(problem) => Err(problem.into()),
    }
}

/// Whoever reads may have seen enough: `pipeline .. | head`.
fn print(text: &str) -> ExitCode {
    let written = anstream::stdout().write_all(text.as_bytes());
    ExitCode::from(u8::from(written.is_err()))
}
