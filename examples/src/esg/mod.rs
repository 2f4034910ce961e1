//! The `esg` program.
mod answers;
mod replay;
mod scan;
mod show;

use std::error::Error;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand, ValueEnum};
use harness::esg::{CPython, Program, Python, Trust};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Programs of Python steps, of which only what an edit touched runs again.
#[derive(Debug, Parser)]
pub struct Options {
    /// The Python to run steps with; the newest of 3.11 to 3.13 in PATH otherwise. Of the Python of
    /// a virtual environment, steps may import what is installed there.
    #[arg(long, global = true, value_name = "PATH")]
    python: Option<PathBuf>,
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
    /// Runs a program, then edits it and runs what the edits touched.
    Run {
        /// A script with `# %%` cells, or a notebook.
        file: PathBuf,
        /// After the first run: the step gets the source in FILE.
        #[arg(long, value_name = "STEP=FILE")]
        edit: Vec<String>,
        /// Compare with running everything in a fresh worker.
        #[arg(long)]
        verify: bool,
        /// Keep program, executions and values here, and go on from what is there.
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
    /// Programs with edits: edges, and what runs.
    Edges,
}

/// Does what the options say; the exit code.
#[must_use]
pub fn run(options: &Options) -> u8 {
    let done = match &options.command {
        Command::Scan { file } => scan::scan_file(file),
        Command::Plan { file } => show::plan(file),
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

/// A worker. It is only a process of its own.
fn worker(options: &Options) -> Result<Python> {
    let python = options.python.as_ref().map_or_else(CPython::find, CPython::at);
    Ok(python.trust(Trust::Mine).start()?)
}

/// Said once before steps run.
fn announce() {
    eprintln!(
        "esg: the steps run in a process of their own and are not kept from files, network and \
         other processes: run only code that you trust"
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
