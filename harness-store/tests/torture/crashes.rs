//! Steps that end their process.

use std::path::Path;
use std::time::Duration;

use harness::inspect::Phase;
use harness::llm::{Spend, Usage};
use harness::prelude::*;
use harness::session::Change;
use harness::{FailureKind, OnBusy, Outcome, Retry, Sessions, observe};

use crate::check::Log;
use crate::child::{Other, say, setting};
use crate::place::{Place, report};
use crate::store::{Kind, Store, in_each_store};
use crate::work::open;

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    #[state(reduce = append)]
    lines: Vec<String>,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    First,
    Last,
}

async fn first(_: View<Doc>, cx: Cx<()>) -> StepResult<Doc> {
    Ok(Doc::update().lines([format!("first of {}", cx.step())]))
}

async fn aborts(_: View<Doc>, _: Cx<()>) -> StepResult<Doc> {
    if setting("SPARED") == "1" {
        return Ok(Doc::update().lines(["spared".to_owned()]));
    }
    std::process::abort()
}

fn spend(tokens: u64) -> Spend {
    Spend { usage: Usage { input: Some(tokens), ..Usage::default() }, cost_micros: Some(tokens) }
}

/// Fails twice, and charges each time; the third time its process may end before that.
async fn costs(_: View<Doc>, cx: Cx<()>) -> StepResult<Doc> {
    if cx.attempt() == 3 && setting("ABORTS") == "1" {
        std::process::abort();
    }
    observe::current().unwrap().charge(&spend(u64::from(cx.attempt().min(3)) * 100));
    match cx.attempt() {
        1 | 2 => Err(StepError::retryable("not yet")),
        _ => Ok(Doc::update().lines(["paid".to_owned()])),
    }
}

fn agent(store: Store, what: &str) -> Agent<(), Doc> {
    let costly = what == "costs";
    Harness::<(), Doc>::builder("crashes")
        .start(Step::First)
        .steps(|define, step| match step {
            Step::First => define.run(first).then(Step::Last),
            Step::Last if costly => {
                define.run(costs).retry(Retry::every(Duration::from_millis(1)).times(5)).end()
            }
            Step::Last => define.run(aborts).end(),
        })
        .build()
        .unwrap()
        .agent("crashes", ())
        .store(store)
        // A server does not notice the end of a process before that.
        .lease(Duration::from_millis(300))
}

/// Begins a session, or resumes it.
pub async fn crasher(dir: &Path) {
    let store = open(dir, true).await;
    let (agent, session) = (agent(store.clone(), &setting("WHAT")), setting("SESSION"));
    let outcome = match Sessions::new(store).status(&session).await {
        Ok(_) => agent.resume(&*session, Answers::none(), ()).on_busy(OnBusy::Wait).await,
        Err(_) => agent.run(Doc::update(), ()).session(&session).await,
    };
    say(&match outcome {
        Ok(Outcome::Ended(ended)) => format!("ended {:?}", ended.state.lines.last().unwrap()),
        Ok(Outcome::Failed(failed)) => format!("failed {:?}", failed.failure.kind),
        other => format!("{other:?}"),
    });
}

fn run_or_resume(dir: &Path, session: &str, what: &str, more: (&str, &str)) -> (bool, Vec<String>) {
    let settings =
        [("SESSION", session.to_owned()), ("WHAT", what.to_owned()), (more.0, more.1.to_owned())];
    let (status, said) = Other::start("crasher", dir, &settings).end();
    (status.success(), said)
}

in_each_store!(a_step_that_ends_its_process_is_given_up_after_five_takeovers, give_up);

fn give_up(kind: Kind) {
    let _alone = crate::alone();
    let dir = Place::new("crashes", None);
    kind.choose(dir.path());
    let mut crashes = 0;
    let said = loop {
        let (lives, said) = run_or_resume(dir.path(), "x", "aborts", ("SPARED", "0"));
        if lives {
            break said;
        }
        crashes += 1;
        assert!(crashes < 20, "it is taken over again and again");
    };
    assert_eq!(said, [format!("failed {:?}", FailureKind::CrashLoop)]);
    let runtime = crate::work::runtime();
    let store = runtime.block_on(open(dir.path(), true));
    let status = runtime.block_on(Sessions::new(store.clone()).status("x")).unwrap();
    assert_eq!(status.phase, Phase::Failed);
    let log = runtime.block_on(Log::read(&store, "x")).unwrap();
    let recovered =
        |(_, entry): &&(_, harness::session::Entry)| matches!(entry.change, Change::Recovered(_));
    assert_eq!(log.entries.iter().filter(recovered).count(), 5);
    // The one that begins it, and all takeovers but the one that gives up.
    assert_eq!(crashes, 5);
    // Once a person has seen to it, it continues.
    let (lives, said) = run_or_resume(dir.path(), "x", "aborts", ("SPARED", "1"));
    assert!(lives);
    assert_eq!(said, ["ended \"spared\""]);
    report(&format!("crashes: given up after {crashes} ends of a process, and resumed"));
}

in_each_store!(what_failed_attempts_have_spent_survives_the_end_of_the_process, spend_and_end);

fn spend_and_end(kind: Kind) {
    let _alone = crate::alone();
    let dir = Place::new("crashes", None);
    kind.choose(dir.path());
    assert!(!run_or_resume(dir.path(), "killed", "costs", ("ABORTS", "1")).0);
    for session in ["killed", "whole"] {
        let (lives, said) = run_or_resume(dir.path(), session, "costs", ("ABORTS", "0"));
        assert!(lives);
        assert_eq!(said, ["ended \"paid\""]);
    }
    let runtime = crate::work::runtime();
    let sessions = Sessions::new(runtime.block_on(open(dir.path(), true)));
    let spent = |session: &str| runtime.block_on(sessions.status(session)).unwrap().spent;
    assert_eq!(spent("whole"), spend(600));
    assert_eq!(spent("killed"), spent("whole"));
}
