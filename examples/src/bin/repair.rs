//! Repairs Python scripts that fail.
//!
//! ```text
//! cargo run -p examples --bin repair -- [--yes] [--write] [--json] [--rounds N] [FILE.py …]
//! cargo run -p examples --bin repair -- [--yes] [--write] [--json] --resume ID
//! ```
//!
//! Each script runs in a scratch directory under limits. What fails is looked
//! up in rules; each proposal is shown as a diff and waits for an approval.
//!
//! Every step's result is on disk before the next step begins, so Ctrl-C,
//! `kill -9` and a question that nobody can answer now lose nothing.

use std::process::ExitCode;

use clap::Parser;
use examples::repair_loop::program::{Options, run};

#[tokio::main]
async fn main() -> ExitCode {
    ExitCode::from(run(Options::parse()).await)
}
