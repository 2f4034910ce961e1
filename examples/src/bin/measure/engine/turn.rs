//! A turn of 20 steps with a question in the middle: on a Restate cluster of three nodes, which runs it,
//! and with PostgreSQL as the store of the process that runs it.

use std::time::Instant;

use harness::prelude::*;
use harness_store::PostgresStoreOptions;
use harness_store::restate::RestateStore;
use tokio::runtime::Runtime;

use super::super::growing::message;
use super::nodes::{Nodes, retried};
use super::{Fallible, Figure, measured, name, serve};
use crate::figure::{is_once, scaled};

const STEPS: usize = 20;

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Talk {
    #[state(reduce = append)]
    messages: Vec<String>,
}

#[derive(Question, Serialize, Deserialize)]
#[question(answer = bool)]
struct Sure {
    about: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Say,
    Ask,
    SayMore,
}

#[derive(Signal, Clone, Copy, Debug)]
enum Next {
    More,
    Enough,
}

async fn say(talk: View<Talk>, _cx: Cx<()>) -> StepResult<Talk> {
    Ok(Talk::update().messages([message(talk.messages.len())]))
}

/// A loop that says something `before` times, asks, and speaks on to 20 messages.
pub(super) fn harness(before: usize) -> Fallible<Harness<(), Talk>> {
    let until = |most: usize| {
        move |talk: &Talk| if talk.messages.len() >= most { Next::Enough } else { Next::More }
    };
    Ok(Harness::<(), Talk>::builder("talks")
        .start(Step::Say)
        .steps(|define, step| match step {
            Step::Say => define.run(say).route(until(before), |signal| match signal {
                Next::More => to(Step::Say),
                Next::Enough => to(Step::Ask),
            }),
            Step::Ask => define
                .ask(|talk: View<Talk>, _| async move {
                    Ok(Sure { about: talk.messages.last().cloned().unwrap_or_default() })
                })
                .answer(|_, _, _| async move { Ok(Talk::update()) })
                .then(Step::SayMore),
            Step::SayMore => define.run(say).route(until(STEPS), |signal| match signal {
                Next::More => to(Step::SayMore),
                Next::Enough => end(),
            }),
        })
        .build()?)
}

/// How long turns take, one after the other: the sorted milliseconds.
fn timed(runtime: &Runtime, turn: impl AsyncFn(String) -> Fallible<()>) -> Fallible<Vec<f64>> {
    let mut took = Vec::new();
    for nth in 0..scaled(if is_once() { 20 } else { 300 }) {
        let begun = Instant::now();
        runtime.block_on(turn(format!("s{nth:04}")))?;
        took.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    took.sort_by(f64::total_cmp);
    Ok(took)
}

async fn on_restate(store: &RestateStore, session: String) -> Fallible<()> {
    let asked = store.run(&session, "in", &Talk::update()).await?;
    let asked = asked.interrupts.into_iter().next().ok_or("it does not ask")?;
    let ended = store.answer(&session, asked, true.into(), None).await?;
    match ended.failure {
        None => Ok(()),
        Some(failure) => Err(failure.into()),
    }
}

async fn on_postgres(agent: &Agent<(), Talk>, session: String) -> Fallible<()> {
    let outcome = agent.run(Talk::update(), ()).session(&session).await?;
    let Outcome::Interrupted(waiting) = outcome else { return Err("it does not ask".into()) };
    let yes = waiting.pending::<Sure>()?.answer(true);
    agent.resume(&*session, yes, ()).await?.ended()?;
    Ok(())
}

/// The median and the 99th percentile of a turn on the cluster, beside those on PostgreSQL.
pub(crate) fn turns() -> Vec<Figure> {
    let measure = || -> Fallible<Vec<Figure>> {
        let (runtime, harness) = (Runtime::new()?, harness(STEPS / 2)?);
        let url = std::env::var("HARNESS_POSTGRES_URL")
            .map_err(|_| "`HARNESS_POSTGRES_URL` is not set: it says which server to measure")?;
        let schema = name("measure")?.replace('-', "_");
        let options = PostgresStoreOptions::new().schema(&schema);
        let stored =
            harness.clone().agent("talks", ()).store(runtime.block_on(options.connect(&url))?);
        let theirs = timed(&runtime, async |session| on_postgres(&stored, session).await)?;
        runtime.block_on(drop_schema(&url, &schema))?;

        let nodes = Nodes::start(3)?;
        let agent = harness.agent("talks", ());
        let store = runtime.block_on(serve(&agent, &nodes.addresses(0)))?;
        // The first turns wait until the cluster has settled.
        runtime.block_on(retried(async || on_restate(&store, name("first")?).await))?;
        let ours = timed(&runtime, async |session| on_restate(&store, session).await)?;
        let at = |took: &[f64], part: f64| {
            let nth = (took.len() as f64 * part) as usize;
            took.get(nth.min(took.len() - 1)).copied().unwrap_or(f64::NAN)
        };
        let figure = |of: &str, part| {
            let (ours, floor) = (at(&ours, part), at(&theirs, part));
            let (case, unit) = (format!("engine-turn/{of}"), "ms/turn, cluster : PostgreSQL");
            Figure { case, ours, floor, unit, ratio: ours / floor }
        };
        Ok(vec![figure("median", 0.5), figure("p99", 0.99)])
    };
    measured("engine-turn", measure())
}

pub(super) async fn drop_schema(url: &str, schema: &str) -> Fallible<()> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    Ok(client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await?)
}
