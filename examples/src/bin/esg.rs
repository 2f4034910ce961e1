//! Programs of Python steps: what each reads and writes, what has to run after an edit, and why.
//!
//! ```text
//! esg scan FILE|-                     what the source reads and writes, as JSON
//! esg plan FILE                       the steps, their edges, a drawing
//! esg run FILE [--edit STEP=FILE …]   runs, edits, replays: what ran and why, what was kept
//! esg answers vectors|edges FILE      answers to a file of cases, as JSON
//! ```
//!
//! A file is a script with `# %%` cells, or a notebook. The steps run in a worker process that is
//! not kept from files and network: they are your own.

use std::process::ExitCode;

use clap::Parser;
use examples::esg::{Options, run};

fn main() -> ExitCode {
    ExitCode::from(run(&Options::parse()))
}
