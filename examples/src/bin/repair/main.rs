//! Repairs Python scripts and notebooks that fail: run the program, diagnose the failure, patch it by
//! rules or by a model, ask for an approval, and run again what the patch affects.
//!
//! ```text
//! cargo run -p examples --bin repair                     # the ten scripts that ship with it
//! cargo run -p examples --bin repair -- --yes script.py  # approve every patch
//! cargo run -p examples --bin repair -- --test test_shop.py shop.py
//! cargo run -p examples --bin repair -- --model anthropic/claude-sonnet-4-5 analysis.ipynb
//! cargo run -p examples --bin repair -- --resume ID      # after Ctrl-C, a kill or an open question
//! cargo run -p examples --bin repair -- --help           # --write, --json, --data, --python, --trust, ..
//! ```
//!
//! A program runs as code steps of the execution state graph, in a sandbox: a patch of one part runs that
//! part again and what depends on it. Each file is one session in a file store: every step is on disk
//! before the next one begins, so Ctrl-C and `kill -9` lose nothing.

#![deny(clippy::wildcard_enum_match_arm)]

mod batch;
mod console;
mod diff;
mod document;
mod file;
mod program;
mod replace;
mod report;
mod source;
mod state;
mod steps;
#[cfg(test)]
mod tests;
mod worker;

use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use harness::BuildError;
use harness::code::{self, Bench};
use harness::prelude::*;

use state::Repair;
use steps::{Decided, Judged, Left, Ran, ran};
use steps::{
    ask, breaks, decided, give_up, hear, how, judge, judged, left, patch, report, take_back,
};

fn main() -> ExitCode {
    // Started again as the launcher of a sandbox, it becomes the Python that runs the programs.
    harness::esg::sandbox::enter();
    start()
}

#[tokio::main]
async fn start() -> ExitCode {
    ExitCode::from(program::run(program::Options::parse()).await)
}

/// The steps of a repair.
#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Runs what the last change affects.
    Run,
    /// Finds the cause of a failure.
    Diagnose,
    /// Says whether the last patch helped.
    Judge,
    /// Patches the program.
    Patch,
    /// Asks whether the patch may run.
    Approve,
    /// Reverts it, since it did not help or was declined.
    TakeBack,
    /// Records that there is no further patch.
    GiveUp,
    /// Records that a step failed.
    Break,
    /// Records why the program is not repaired, if it is not.
    Report,
}

/// How the loop ends.
#[derive(Signal, Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The program runs.
    Runs,
    /// The program fails.
    Fails,
}

/// How long the repair of one file may take, not counting the person.
const WALL: Duration = Duration::from_secs(600);

/// Declares the loop, which repairs at most `rounds` faults of a file.
fn repairer(
    bench: Bench,
    model: Option<Arc<dyn Llm>>,
    rounds: u32,
) -> Result<Harness<Ctx, Repair>, BuildError> {
    let again = Retry::exponential().times(2);
    Harness::<Ctx, Repair>::builder("repair")
        .provide(Ctx::fixed().bench(bench).model(model).build())
        .start(Step::Run)
        .on_error(Step::Break)
        // For each fault a few patches: run, diagnose, judge, patch, ask, take back.
        .budget(Budget::steps(20 + 50 * u64::from(rounds)).wall(WALL))
        .steps(|define, step| match step {
            Step::Run => define
                .handler(code::execute(|cx: &Ctx| cx.bench.clone()))
                .retry(again)
                .route(ran, |ran| match ran {
                    Ran::Fails => to(Step::Diagnose),
                    Ran::NoBetter => to(Step::TakeBack),
                    Ran::Works | Ran::Wrong => to(Step::Report),
                }),
            Step::Diagnose => define
                .handler(code::diagnose(|cx: &Ctx| cx.bench.clone()))
                .retry(again)
                .then(Step::Judge),
            Step::Judge => {
                define.run(move |repair, cx| judge(rounds, repair, cx)).route(judged, |judged| {
                    match judged {
                        Judged::Fault => to(Step::Patch),
                        Judged::NoBetter => to(Step::TakeBack),
                        Judged::Enough => to(Step::Report),
                    }
                })
            }
            Step::Patch => {
                define.run(patch).retry(again).on_error(Step::GiveUp).then(Step::Approve)
            }
            Step::Approve => define.ask(ask).answer(hear).route(decided, |said| match said {
                Decided::Apply => to(Step::Run),
                Decided::Decline => to(Step::TakeBack),
            }),
            Step::TakeBack => define.run(take_back).route(left, |left| match left {
                Left::More => to(Step::Run),
                Left::Quit => to(Step::Report),
            }),
            Step::GiveUp => define.run(give_up).then(Step::Report),
            Step::Break => define.run(breaks).then(Step::Report),
            Step::Report => define.run(report).route(how, |came| match came {
                End::Runs | End::Fails => end(),
            }),
        })
        .build()
}

/// What the steps use and no snapshot contains.
#[derive(Context)]
struct Ctx {
    /// The worker that runs the programs.
    bench: Bench,
    /// What is asked where no rule knows a patch.
    model: Option<Arc<dyn Llm>>,
}

impl fmt::Debug for Ctx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ctx").field("bench", &self.bench).finish_non_exhaustive()
    }
}
