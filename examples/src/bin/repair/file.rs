//! One file, from its first run to its report: one session of the loop.

use harness::inspect::{Phase, SessionsError};
use harness::prelude::*;
use harness::{Run, RunError, RunRequest, Sessions};
use tokio::sync::watch;

use super::batch::{Batch, Job, JobError};
use super::console::{Console, Reply};
use super::report::{FileReport, Standing};
use super::state::{Approve, Repair, Why};
use super::steps::how;
use super::{Ctx, End};

/// Repairs one script. When the loop asks, the console asks the person, and the run resumes with the
/// answer. A session that another process started continues where that process left it.
pub(super) async fn repair(
    agent: &Agent<Ctx, Repair>,
    sessions: &Sessions,
    session: &str,
    job: &Job,
    batch: &Batch,
    console: &Console,
) -> Result<FileReport, JobError> {
    let (script, request) = match stored(sessions, session).await {
        Ok(Some((script, Phase::Ended))) => return Ok(ended(script)),
        Ok(Some((script, _))) => (script, agent.resume(session, Answers::none(), ())),
        Ok(None) => {
            let script = Repair { name: job.name.clone(), ..Repair::default() };
            (script, agent.run(job.input(batch)?, ()).session(session))
        }
        Err(error) => {
            let script = Repair { name: job.name.clone(), ..Repair::default() };
            return Ok(broken(script, &error));
        }
    };
    Ok(advance(agent, request, script, console).await)
}

/// The stored state of a session, if there is one.
async fn stored(
    sessions: &Sessions,
    session: &str,
) -> Result<Option<(Repair, Phase)>, SessionsError> {
    let phase = match sessions.status(session).await {
        Err(error) if error.is_not_found() => return Ok(None),
        status => status?.phase,
    };
    let state = sessions.state(session).await?;
    Ok(Some((Repair::deserialize(state).unwrap_or_default(), phase)))
}

async fn advance(
    agent: &Agent<Ctx, Repair>,
    mut request: RunRequest<Repair>,
    script: Repair,
    console: &Console,
) -> FileReport {
    loop {
        let run = request.start();
        let waiting = match settled(run, console.stop.clone()).await {
            Ok(Outcome::Interrupted(waiting)) => waiting,
            Ok(outcome) => return report(outcome, script),
            Err(error) => return broken(script, &error),
        };
        let unanswered = |standing| FileReport::new((*waiting.state).clone(), standing, None);
        let question = match waiting.pending::<Approve>() {
            Ok(question) => question,
            Err(error) => return broken(script, &error),
        };
        if console.is_stopping() {
            return unanswered(Standing::Stopped);
        }
        let asked = &question.question;
        match console.ask(asked, &waiting.state).await {
            Reply::Answer(decision, by) => {
                request = agent.resume(&waiting, question.answer(decision).by(by), ());
            }
            Reply::NoTerminal => {
                let Approve { line, explanation, .. } = asked;
                let why = format!("line {line}, {explanation}");
                let repair = (*waiting.state).clone();
                return FileReport::new(repair, Standing::NotAsked, Some(why));
            }
            Reply::Stop => return unanswered(Standing::Stopped),
        }
    }
}

/// Waits for a run. The first request to stop lets it finish its step, the
/// second does not.
async fn settled(
    mut run: Run<Repair>,
    mut stop: watch::Receiver<u32>,
) -> Result<Outcome<Repair>, RunError> {
    loop {
        match *stop.borrow_and_update() {
            0 => {}
            1 => run.stop(),
            _ => run.cancel(),
        }
        tokio::select! {
            outcome = &mut run => return outcome,
            changed = stop.changed() => if changed.is_err() {
                return run.await;
            },
        }
    }
}

fn report(outcome: Outcome<Repair>, script: Repair) -> FileReport {
    let known = outcome.state().cloned();
    let failed = |why: Why| {
        let repair = known.clone().unwrap_or_else(|| script.clone());
        FileReport::new(repair, Standing::NotFixed, Some(why.to_string()))
    };
    match outcome {
        Outcome::Ended(it) => ended(it.state),
        Outcome::Stopped(stopped) => {
            FileReport::new((*stopped.state).clone(), Standing::Stopped, None)
        }
        Outcome::Exhausted(it) => failed(Why::Budget { limit: it.limit.to_string() }),
        Outcome::Failed(it) => failed(Why::Broken { error: format!("{:#}", it.failure) }),
        Outcome::Interrupted(_) | Outcome::Waiting(_) | Outcome::Queued(_) => {
            failed(Why::Broken { error: "it waits without a question".to_owned() })
        }
    }
}

/// The report of a session that ended.
fn ended(repair: Repair) -> FileReport {
    let standing = match how(&repair) {
        End::Runs if repair.original == repair.copy() => Standing::Runs,
        End::Runs => Standing::Fixed,
        End::Fails => Standing::NotFixed,
    };
    let why = repair.why.as_ref().map(ToString::to_string);
    FileReport::new(repair, standing, why)
}

fn broken(script: Repair, error: &dyn std::error::Error) -> FileReport {
    let why = Why::Broken { error: error.to_string() };
    FileReport::new(script, Standing::NotFixed, Some(why.to_string()))
}
