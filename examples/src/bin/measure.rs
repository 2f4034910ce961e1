//! Measures what a loop costs, each case beside the same program written by hand, in one process.
//!
//! ```text
//! cargo run --release -p examples --bin measure -- [--json] [--once] [CASE …]
//! ```
//!
//! `ratio` is ours over the floor, each in the fastest of rounds that alternate the two; where they
//! wait for a disk, the middle one of all rounds' ratios. `--once` makes a single round, which shows
//! that everything runs and measures nothing.

use std::process::ExitCode;

use examples::measure::{self, Figure};

#[global_allocator]
static ALLOCATOR: measure::Counting = measure::Counting;

fn main() -> ExitCode {
    let mut json = false;
    let mut wanted: Vec<String> = Vec::new();
    for arg in std::env::args().skip(1) {
        match arg.as_str() {
            "--json" => json = true,
            "--once" => measure::once(),
            "--help" | "-h" => {
                println!(
                    "measure [--json] [--once] [CASE …]\ncases: {}",
                    measure::names().join(", ")
                );
                return ExitCode::SUCCESS;
            }
            name if measure::names().contains(&name) => wanted.push(arg),
            other => {
                eprintln!("measure: no case `{other}` (cases: {})", measure::names().join(", "));
                return ExitCode::from(2);
            }
        }
    }
    if cfg!(debug_assertions) {
        eprintln!("measure: built without optimisation; figures mean nothing (use --release)");
    }
    if !json {
        println!("{}", Figure::header());
    }
    for (name, case) in measure::CASES {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            for figure in case() {
                if json {
                    println!("{}", figure.to_json());
                } else {
                    println!("{figure}");
                }
            }
        }
    }
    ExitCode::SUCCESS
}
