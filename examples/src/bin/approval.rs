//! Letters that leave only once a person has approved them, each command in a process of its own.
//!
//! ```text
//! approval start "Dear all, …"      prints the session's id
//! approval list                     what waits for a person
//! approval answer ID approve        goes on, and prints what came of it
//! approval history ID               what happened so far
//! ```
//!
//! A process may be killed at any moment: the next one goes on from what was recorded, and the
//! letter leaves at most once.

use std::process::ExitCode;

use clap::Parser;
use examples::approval::program::{Options, run};

#[tokio::main]
async fn main() -> ExitCode {
    ExitCode::from(run(Options::parse()).await)
}
