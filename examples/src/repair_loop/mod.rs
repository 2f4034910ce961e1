//! The loop of the `repair` program, and what turns it into a program.
//!
//! A session repairs one script: it runs it, proposes a repair of what fails,
//! asks whether to apply it, and runs it again. [`repairer`] is the loop;
//! [`program`] runs it over files and asks people. Sessions are kept in files:
//! one that was interrupted, or whose process was killed, goes on in another.

#![deny(clippy::wildcard_enum_match_arm)]

mod batch;
mod desk;
mod file;
pub mod program;
mod replace;
mod report;
mod state;
mod steps;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use harness::prelude::*;
use harness::{BuildError, async_trait};

use crate::repair::{Limits, Python, PythonError, Ran};

pub use report::{FileReport, Standing};
pub use state::{Approve, Decision, Fate, Repair, Tried, Why};

/// What runs scripts.
#[async_trait]
pub trait Runner: Send + Sync + 'static {
    /// Runs a script to its end, or to one of the limits.
    async fn run(&self, source: &str, name: &str, limits: &Limits) -> Result<Ran, PythonError>;
}

#[async_trait]
impl Runner for Python {
    async fn run(&self, source: &str, name: &str, limits: &Limits) -> Result<Ran, PythonError> {
        Python::run(self, source, name, limits).await
    }
}

/// What the steps use and nothing saves.
#[derive(Context)]
pub struct Ctx {
    /// What runs scripts.
    pub runner: Arc<dyn Runner>,
    /// What a script may use.
    pub limits: Limits,
}

impl fmt::Debug for Ctx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ctx").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// The steps.
#[derive(StepId, Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Runs the copy.
    Run,
    /// Finds the repairs that are worth asking about.
    Propose,
    /// Asks whether to apply the first of them.
    Approve,
    /// Applies it to the copy.
    Apply,
    /// Takes it back, since it did not help.
    TakeBack,
    /// Notes that there were faults enough.
    Enough,
    /// Notes that a step failed.
    Break,
    /// Says what came of it.
    Report,
}

/// How the loop ends.
#[derive(Signal, Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The script runs.
    Runs,
    /// It does not.
    Fails,
}

/// How long a run may take beyond the limits on the script itself.
const SLACK: Duration = Duration::from_secs(15);
/// How long the repair of one script may take, not counting the person.
const WALL: Duration = Duration::from_secs(300);

/// Declares the loop. At most `rounds` faults of a script are taken on.
///
/// # Errors
/// If the loop is not sound, which a test rules out.
pub fn repairer(
    runner: Arc<dyn Runner>,
    limits: Limits,
    rounds: u32,
) -> Result<Harness<Ctx, Repair>, BuildError> {
    use steps::{AfterRun, Decided, Left};
    use steps::{after_run, any_left, apply, ask, breaks, decided, enough, hear};
    use steps::{how, propose, report, run, take_back};

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

#[cfg(test)]
mod tests;
