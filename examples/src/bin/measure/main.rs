//! Measures what a loop costs. Each case runs beside the same program written by hand, in one
//! process.
//!
//! ```text
//! cargo run --release -p examples --bin measure -- [--json] [--once] [CASE …]
//! ```
//!
//! `ratio` is ours over the floor, the hand-written program; `at most` is its target. Rounds of the
//! two alternate; the fastest round of each counts. Where they wait for a disk, the figures are
//! medians over all rounds. `--once` runs a single round of each case: a test that it works, no
//! measurement.

mod at_once;
mod counting;
mod disk;
mod each;
mod edges;
mod engine;
mod esg_patch;
mod esg_repair;
mod esg_replay;
mod esg_sandbox;
mod esg_step;
mod esg_sync;
mod figure;
mod floor;
mod growing;
mod inspector;
mod listing;
mod llm;
mod log;
mod otel;
mod ours;
mod postgres;
mod programs;
mod python;
mod reopen;
mod runs;
mod scan;
mod sessions;
mod sqlite;

use std::process::ExitCode;

use figure::{
    Figure, block_on, compare, compare_waiting, cpu_time, failed, is_once, median, rounds, scaled,
};

/// Measures a case; returns its figures.
type Case = fn() -> Vec<Figure>;

/// The cases, by name.
const CASES: &[(&str, Case)] = &[
    ("loop-bare", ours::bare),
    ("loop-bare-run", ours::fixed),
    ("loop-bare-allocations", ours::allocations),
    ("loop-growing", growing::growing),
    ("otel-off", otel::off),
    ("otel-on", otel::on),
    ("inspector", inspector::inspector),
    ("runs", runs::runs),
    ("each", each::each),
    ("sessions", sessions::sessions),
    ("log-memory", log::memory),
    ("log-memory-allocations", log::allocations),
    ("log-file", disk::time),
    ("log-file-bytes", disk::bytes),
    ("log-sqlite", sqlite::log),
    ("sessions-sqlite", sqlite::sessions),
    ("log-postgres", postgres::log),
    ("sessions-postgres", postgres::sessions),
    ("engine-step", engine::step),
    ("engine-turn", engine::turns),
    ("suspended", engine::suspended),
    ("list-file", listing::file),
    ("list-sqlite", listing::sqlite),
    ("list-postgres", listing::postgres),
    ("list-redis", listing::redis),
    ("resume-file", reopen::resume),
    ("open-memory", reopen::memory),
    ("open-file", reopen::file),
    ("llm-turn", llm::turns),
    ("llm-streams", llm::streams),
    ("esg-edges", edges::edges),
    ("esg-scan", scan::scans),
    ("esg-patch", esg_patch::patches),
    ("esg-step", esg_step::steps),
    ("esg-sync", esg_sync::syncs),
    ("esg-replay", esg_replay::replays),
    ("esg-repair", esg_repair::repairs),
    ("esg-sandbox", esg_sandbox::sandboxes),
    ("esg-programs", programs::programs),
];

fn main() -> ExitCode {
    // A case starts this program again as the launcher of a sandbox.
    harness::esg::sandbox::enter();
    let names: Vec<&str> = CASES.iter().map(|(name, _)| *name).collect();
    let mut json = false;
    let mut wanted: Vec<String> = Vec::new();
    for arg in std::env::args().skip(1) {
        match arg.as_str() {
            "--json" => json = true,
            "--once" => figure::once(),
            "--help" | "-h" => {
                println!("measure [--json] [--once] [CASE …]\ncases: {}", names.join(", "));
                return ExitCode::SUCCESS;
            }
            name if names.contains(&name) => wanted.push(arg),
            other => {
                eprintln!("measure: no case `{other}` (cases: {})", names.join(", "));
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
    for (name, case) in CASES {
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
