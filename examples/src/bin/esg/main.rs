//! Programs of Python steps: what each step reads and writes, what must run after an edit, and why.
//!
//! ```text
//! esg scan FILE|-                     what the source reads and writes, as JSON
//! esg plan FILE                       the steps, their edges, a drawing
//! esg run FILE [--edit STEP=FILE …]   runs, edits, replays: what ran and why, what was kept
//! esg answers vectors|edges FILE      answers to a file of cases, as JSON
//! ```
//!
//! For example, `cargo run -p examples --bin esg -- plan examples/programs/sales.py`. A file is a
//! script with `# %%` cells, or a notebook. The steps run in a worker process that may use files and
//! the network: run only code that you trust, or add `--sandbox`. Needs Python 3.11 or newer.

mod answers;
mod plan;
mod replay;
mod scan;

use std::error::Error;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use harness::esg::{CPython, Program, Trust, WorkerProcess};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    // With `--sandbox` this program is started again as the launcher.
    harness::esg::sandbox::enter();
    ExitCode::from(run(&Options::parse()))
}

/// Programs of Python steps, of which only what an edit touched runs again.
#[derive(Debug, Parser)]
struct Options {
    /// The Python that runs the steps; by default the newest of 3.11 to 3.13 in PATH. With the Python
    /// of a virtual environment, steps may import what is installed there.
    #[arg(long, global = true, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Runs the steps in a sandbox of the kernel, as code of others: without network, processes and files
    /// outside of their scratch directory. Linux only.
    #[arg(long, global = true)]
    sandbox: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// What a source reads and writes, as JSON.
    Scan {
        /// The source; `-` for standard input.
        file: PathBuf,
    },
    /// The steps of a program, what may depend on what, and a drawing.
    Plan {
        /// A script with `# %%` cells, or a notebook.
        file: PathBuf,
    },
    /// Runs a program, then edits it and runs the steps that the edits touch.
    Run {
        /// A script with `# %%` cells, or a notebook.
        file: PathBuf,
        /// After the first run: replace the step's source by FILE.
        #[arg(long, value_name = "STEP=FILE")]
        edit: Vec<String>,
        /// Compare with running everything in a fresh worker.
        #[arg(long)]
        verify: bool,
        /// Keep the program, its executions and its values here, and continue from them.
        #[arg(long, value_name = "DIR")]
        store: Option<PathBuf>,
    },
    /// Answers a file of cases, as JSON.
    Answers {
        /// Which kind of cases.
        kind: Kind,
        /// The file.
        file: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// Single steps: what each reads and writes.
    Vectors,
    /// Programs with edits: the edges, and which steps run.
    Edges,
}

/// Runs one command; returns the exit code.
fn run(options: &Options) -> u8 {
    let done = match &options.command {
        Command::Scan { file } => scan::scan_file(file),
        Command::Plan { file } => plan::plan(file),
        Command::Run { file, edit, verify, store } => {
            replay::run(options, file, edit, *verify, store.as_deref())
        }
        Command::Answers { kind: Kind::Vectors, file } => answers::vectors(file),
        Command::Answers { kind: Kind::Edges, file } => answers::edges(options, file),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("esg: {error}");
            let mut source = error.source();
            while let Some(cause) = source {
                eprintln!("  because {cause}");
                source = cause.source();
            }
            2
        }
    }
}

/// A worker: a child process, with or without a sandbox.
fn worker(options: &Options) -> Result<WorkerProcess> {
    let python = options.python.as_ref().map_or_else(CPython::find, CPython::at);
    let trust = if options.sandbox { Trust::Untrusted } else { Trust::Mine };
    Ok(python.trust(trust).start()?)
}

/// Printed once before steps run without a sandbox.
fn warn(options: &Options) {
    if options.sandbox {
        return;
    }
    eprintln!(
        "esg: the steps run in a child process that may use files, the network and other \
         processes: run only code that you trust"
    );
}

fn read(file: &Path) -> Result<String> {
    let mut text = String::new();
    if file == Path::new("-") {
        std::io::stdin().read_to_string(&mut text)?;
    } else {
        text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(text)
}

/// The program in a file.
fn program(file: &Path) -> Result<Program> {
    let text = read(file)?;
    let notebook = file.extension().is_some_and(|extension| extension == "ipynb");
    Ok(if notebook { Program::from_notebook(&text)? } else { Program::from_script(&text)? })
}
