//! Runs a text pipeline that a file describes.
//!
//! ```text
//! cargo run -p examples --bin pipeline -- [--draw] [--out FOLDER] FILE.toml
//! ```
//!
//! The description names the steps, what each runs with which parameters, and where the pipeline
//! goes from it. What is wrong with it is told at once. See `examples/pipelines`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use examples::pipeline::{Pipeline, Problems, run};

#[derive(Parser)]
#[command(about = "Runs a text pipeline that a file describes")]
struct Options {
    /// Draws the pipeline as a Mermaid diagram instead of running it.
    #[arg(long)]
    draw: bool,
    /// Where steps write their files.
    #[arg(long, default_value = ".")]
    out: PathBuf,
    /// The description: TOML, or JSON if it ends in `.json`.
    file: PathBuf,
}

#[tokio::main]
async fn main() -> ExitCode {
    match work(&Options::parse()).await {
        Ok(text) => {
            let written = anstream::stdout().write_all(text.as_bytes());
            // Whoever reads may have seen enough: `pipeline .. | head`.
            ExitCode::from(u8::from(written.is_err()))
        }
        Err(problem) => {
            anstream::eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

async fn work(options: &Options) -> Result<String, Box<dyn std::error::Error>> {
    let pipeline = Pipeline::read(&options.file)?;
    let folder = options.file.parent().unwrap_or(std::path::Path::new("")).to_owned();
    let harness = pipeline.build(folder, options.out.clone()).map_err(Box::<Problems>::new)?;
    if options.draw {
        return Ok(harness.graph().to_mermaid());
    }
    run(&harness).await
}
