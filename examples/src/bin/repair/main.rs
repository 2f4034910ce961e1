//! Repairs Python scripts that fail: run the script, look the fault up in rules, show a proposal as
//! a diff, ask for an approval, apply it to a copy, run again.
//!
//! ```text
//! cargo run -p examples --bin repair                     # the ten scripts that ship with it
//! cargo run -p examples --bin repair -- --yes script.py  # approve every proposal
//! cargo run -p examples --bin repair -- --resume ID      # after Ctrl-C, a kill or an open question
//! cargo run -p examples --bin repair -- --help           # --write, --json, --rounds, --store
//! ```
//!
//! A script runs in a scratch directory, under limits, with the `python3` of this machine. Each
//! script is one session in a file store: every step is on disk before the next one begins, so
//! Ctrl-C and `kill -9` lose nothing.

#![deny(clippy::wildcard_enum_match_arm)]

mod batch;
mod console;
mod engine;
mod file;
mod program;
mod replace;
mod report;
mod state;
mod steps;
#[cfg(test)]
mod tests;

use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use harness::prelude::*;
use harness::{BuildError, async_trait};

use engine::{Limits, Python, PythonError, Ran};
use state::Repair;
use steps::{AfterRun, Decided, Left};
use steps::{after_run, any_left, apply, ask, breaks, decided, enough, hear};
use steps::{how, propose, report, run, take_back};

#[tokio::main]
async fn main() -> ExitCode {
    ExitCode::from(program::run(program::Options::parse()).await)
}

/// The steps of a repair.
#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Runs the copy.
    Run,
    /// Finds the repairs that are worth a question.
    Propose,
    /// Asks whether to apply the first of them.
    Approve,
    /// Applies it to the copy.
    Apply,
    /// Reverts it, since it did not help.
    TakeBack,
    /// Records that the script has too many faults.
    Enough,
    /// Records that a step failed.
    Break,
    /// Records why the script is not repaired, if it is not.
    Report,
}

/// How the loop ends.
#[derive(Signal, Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The script runs.
    Runs,
    /// The script fails.
    Fails,
}

/// How long a run may take beyond the limits on the script itself.
const SLACK: Duration = Duration::from_secs(15);
/// How long the repair of one script may take, not counting the person.
const WALL: Duration = Duration::from_secs(300);

/// Declares the loop, which repairs at most `rounds` faults of a script.
fn repairer(
    runner: Arc<dyn Runner>,
    limits: Limits,
    rounds: u32,
) -> Result<Harness<Ctx, Repair>, BuildError> {
    let patience = limits.wall + SLACK;
    let again = Retry::exponential().times(2);
    Harness::<Ctx, Repair>::builder("repair")
        .provide(Ctx::fixed().runner(runner).limits(limits).build())
        .start(Step::Run)
        .on_error(Step::Break)
        // A round is a proposal, and for each of at most six: ask, apply, run, take back.
        .budget(Budget::steps(10 + 25 * u64::from(rounds)).wall(WALL))
        .steps(|define, step| match step {
            Step::Run => {
                define.run(run).retry(again).timeout(patience).route(after_run, |ran| match ran {
                    AfterRun::Fault => to(Step::Propose),
                    AfterRun::NoBetter => to(Step::TakeBack),
                    AfterRun::Runs | AfterRun::Stuck => to(Step::Report),
                })
            }
            Step::Propose => {
                define.run(propose).at_most(rounds, Step::Enough).route(any_left, |left| match left
                {
                    Left::Some => to(Step::Approve),
                    Left::None => to(Step::Report),
                })
            }
            Step::Approve => define.ask(ask).answer(hear).route(decided, |said| match said {
                Decided::Apply => to(Step::Apply),
                Decided::Next => to(Step::Approve),
                Decided::Stop => to(Step::Report),
            }),
            Step::Apply => define.run(apply).then(Step::Run),
            Step::TakeBack => define.run(take_back).route(any_left, |left| match left {
                Left::Some => to(Step::Approve),
                Left::None => to(Step::Report),
            }),
            Step::Enough => define.run(enough).then(Step::Report),
            Step::Break => define.run(breaks).then(Step::Report),
            Step::Report => define.run(report).route(how, |came| match came {
                End::Runs | End::Fails => end(),
            }),
        })
        .build()
}

/// Runs scripts: Python, or a fake in tests.
#[async_trait]
trait Runner: Send + Sync + 'static {
    /// Runs a script to its end, or to one of the limits.
    async fn run(&self, source: &str, name: &str, limits: &Limits) -> Result<Ran, PythonError>;
}

#[async_trait]
impl Runner for Python {
    async fn run(&self, source: &str, name: &str, limits: &Limits) -> Result<Ran, PythonError> {
        Python::run(self, source, name, limits).await
    }
}

/// What the steps use and no snapshot contains.
#[derive(Context)]
struct Ctx {
    runner: Arc<dyn Runner>,
    /// What a script may use.
    limits: Limits,
}

impl fmt::Debug for Ctx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ctx").field("limits", &self.limits).finish_non_exhaustive()
    }
}
