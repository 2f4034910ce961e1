//! Reads every state that a session has had, and forks a second session from one of them.
//!
//! ```text
//! cargo run -p examples --bin time_travel -- [--store DIR]
//! ```
//!
//! Needs no network. Without `--store` the sessions are in a temporary directory.

#![deny(clippy::wildcard_enum_match_arm)]

use std::error::Error;
use std::path::PathBuf;

use clap::Parser;
use examples::{describe, log, moment};
use harness::inspect::{MomentPage, Phase};
use harness::prelude::*;
use harness::{Interrupted, Seq, SessionId, Sessions};
use harness_store::FileStore;
use schemars::JsonSchema;

#[derive(Parser)]
#[command(about = "Reads the past states of a session, and forks another session from one")]
struct Options {
    /// Keep the sessions in this directory.
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
}

/// The state: a walk so far.
#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Walk {
    #[state(reduce = append)]
    places: Vec<String>,
    #[state(reduce = add)]
    hours: u32,
}

/// The question: which way?
#[derive(Question, Serialize, Deserialize)]
#[question(answer = Way)]
struct Fork {
    after_hours: u32,
}

#[rustfmt::skip]
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
enum Way { Coast, Hills }

#[rustfmt::skip]
#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step { Walk, Choose, Arrive }

#[rustfmt::skip]
#[derive(Signal, Clone, Copy, Debug)]
enum Next { Further, AtFork }

const ROAD: [&str; 3] = ["the gate", "the mill", "the bridge"];

async fn walk(walk: View<Walk>, _cx: Cx<()>) -> StepResult<Walk> {
    let next = ROAD.get(walk.places.len()).copied().unwrap_or("the end of the road");
    Ok(Walk::update().places([next.to_owned()]).hours(1))
}

fn next(walk: &Walk) -> Next {
    if walk.places.len() < ROAD.len() { Next::Further } else { Next::AtFork }
}

async fn ask(walk: View<Walk>, _cx: Cx<()>) -> Result<Fork, StepError> {
    Ok(Fork { after_hours: walk.hours })
}

async fn choose(_: View<Walk>, _cx: Cx<()>, said: Answered<Fork>) -> StepResult<Walk> {
    let (place, hours) = match said.answer {
        Way::Coast => ("the coast", 2),
        Way::Hills => ("the hills", 5),
    };
    Ok(Walk::update().places([place.to_owned()]).hours(hours))
}

async fn arrive(_: View<Walk>, _cx: Cx<()>) -> StepResult<Walk> {
    Ok(Walk::update().places(["home".to_owned()]).hours(1))
}

/// The interrupt of a walk.
fn interrupt(outcome: Outcome<Walk>) -> Result<Interrupted<Walk>, Box<dyn Error>> {
    let Outcome::Interrupted(interrupted) = outcome else {
        return Err("the walk did not reach the fork".into());
    };
    Ok(interrupted)
}

/// All moments of a session.
async fn moments(
    agent: &Agent<(), Walk>,
    session: &SessionId,
) -> Result<MomentPage<Walk>, Box<dyn Error>> {
    let mut all = agent.history(session, Seq(0), 100).await?;
    while let Some(from) = all.next {
        let page = agent.history(session, from, 100).await?;
        all.moments.extend(page.moments);
        all.next = page.next;
    }
    Ok(all)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let scratch = tempfile::tempdir()?;
    let dir = Options::parse().store.unwrap_or_else(|| scratch.path().join("store"));
    let store = FileStore::open(&dir).await?;
    let walks = Harness::<(), Walk>::builder("walks")
        .start(Step::Walk)
        .steps(|define, step| match step {
            Step::Walk => define.run(walk).route(next, |signal| match signal {
                Next::Further => to(Step::Walk),
                Next::AtFork => to(Step::Choose),
            }),
            Step::Choose => define.ask(ask).answer(choose).then(Step::Arrive),
            Step::Arrive => define.run(arrive).end(),
        })
        .build()?;
    let agent = walks.agent("walker", ()).store(store.clone());

    // A walk along the coast, from beginning to end.
    let interrupted = interrupt(agent.run(Walk::update(), ()).await?)?;
    let first = interrupted.session.clone();
    let coast = interrupted.pending::<Fork>()?.answer(Way::Coast).by("ada");
    let ended = agent.resume(&interrupted, coast, ()).await?.ended()?;
    println!("session {first} ended after {} hours: {}", ended.state.hours, trail(&ended.state));

    println!("\nits log:");
    for (seq, entry) in log(&Sessions::new(store), first.as_str()).await? {
        println!("{:>4}  {}  {}", seq.0, moment(entry.at), describe(&entry));
    }

    println!("\nits states, step by step:");
    let past = moments(&agent, &first).await?;
    for moment in &past.moments {
        // The same state, read by the seq of the entry alone.
        let state = agent.state_at(&first, moment.seq).await?;
        assert_eq!(state, moment.state, "both reads agree");
        println!("{:>4}  {} h  {}", moment.seq.0, state.hours, trail(&state));
    }

    // Another walk, from the fork in the road, with a question of its own.
    let at_fork = past.moments.iter().rfind(|moment| moment.phase == Phase::Interrupted);
    let at_fork = at_fork.ok_or("no moment waits for an answer")?;
    let second = SessionId::fresh();
    agent.fork(&first, at_fork.seq, &second).await?;
    println!("\nsession {second} forked from entry {}", at_fork.seq.0);
    let interrupted = interrupt(agent.resume(&second, Answers::none(), ()).await?)?;
    let hills = interrupted.pending::<Fork>()?.answer(Way::Hills).by("ben");
    let other = agent.resume(&interrupted, hills, ()).await?.ended()?;
    println!("it ended after {} hours: {}", other.state.hours, trail(&other.state));

    let unchanged = moments(&agent, &first).await?;
    let last = unchanged.moments.last().map(|moment| &moment.state);
    assert_eq!(last, Some(&ended.state), "a fork leaves its source as it was");
    println!("the first session is unchanged: {}", trail(&ended.state));
    Ok(())
}

fn trail(walk: &Walk) -> String {
    match walk.places.is_empty() {
        true => "not started".to_owned(),
        false => walk.places.join(", "),
    }
}
