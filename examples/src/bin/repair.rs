//! Repairs Python scripts that fail.
//!
//! ```text
//! cargo run -p examples --bin repair -- [--yes] [--write] [--json] [--rounds N] [FILE.py …]
//! ```
//!
//! Each script runs in a scratch directory under limits. What fails is looked
//! up in rules; each proposal is shown as a diff and waits for an approval.

use std::process::ExitCode;

use clap::Parser;
use examples::repair_loop::program::{Options, run};

#[tokio::main]
async fn main() -> ExitCode {
    ExitCode::from(run(Options::parse()).await)
}
