//! Many sessions that wait for an answer: what each takes on the disk, and how many turns that come to
//! their question a second takes, on a Restate server and on PostgreSQL. Not a comparison with a target:
//! the figures of the guide's page on scale.

use std::sync::Arc;
use std::time::{Duration, Instant};

use harness::prelude::*;
use harness_store::PostgresStoreOptions;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::nodes::{Nodes, retried};
use super::turn::{Talk, drop_schema, harness};
use super::{Fallible, Figure, measured, name, serve};
use crate::figure::scaled;

/// Turns of this many steps, then a question.
const STEPS: usize = 10;
const AT_ONCE: usize = 64;

/// Sessions, and what they took.
struct Took {
    bytes: f64,
    a_second: f64,
    /// Processor time of the server for each, in milliseconds.
    server: f64,
}

/// Runs sessions to their questions.
async fn all<F>(count: usize, turn: impl Fn(String) -> F) -> Fallible<Duration>
where
    F: Future<Output = Fallible<()>> + Send + 'static,
{
    let (begun, room, mut tasks) =
        (Instant::now(), Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new());
    for nth in 0..count {
        let permit = Arc::clone(&room).acquire_owned().await?;
        let turn = turn(format!("s{nth:06}"));
        tasks.spawn(async move {
            let done = turn.await;
            drop(permit);
            done
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(begun.elapsed())
}

fn took(count: usize, took: Duration, bytes: u64, server: f64) -> Took {
    let count = count as f64;
    Took {
        bytes: bytes as f64 / count,
        a_second: count / took.as_secs_f64(),
        server: server / count,
    }
}

/// The processor time of processes so far, in milliseconds, where the system has files that say so.
fn processor(ids: &[u32]) -> Fallible<f64> {
    let mut ticks = 0_u64;
    for id in ids {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
        // What follows the name of the program, which may have any characters.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        for part in fields.skip(11).take(2) {
            ticks += part.parse::<u64>()?;
        }
    }
    // A tick is a hundredth of a second on all systems of today.
    Ok(ticks as f64 * 10.0)
}

/// The processes that another one has started.
fn children(of: &str) -> Fallible<Vec<u32>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(id) = name.to_str().and_then(|it| it.parse().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { continue };
        let after = stat.rsplit(')').next().unwrap_or_default();
        if after.split_whitespace().nth(1) == Some(of) {
            found.push(id);
        }
    }
    Ok(found)
}

fn on_restate(runtime: &Runtime, count: usize) -> Fallible<Took> {
    let nodes = Nodes::start(1)?;
    let agent = harness(STEPS)?.agent("talks", ());
    let store = runtime.block_on(serve(&agent, &nodes.addresses(0)))?;
    let turn = |session: String| {
        let store = store.clone();
        async move {
            let asked = store.run(&session, "in", &Talk::update()).await?;
            match asked.interrupts.len() {
                1 => Ok(()),
                _ => Err("it does not ask".into()),
            }
        }
    };
    runtime.block_on(retried(async || turn("first".to_owned()).await))?;
    let ids: Vec<u32> = nodes.processes.iter().map(std::process::Child::id).collect();
    let (before, worked) = (nodes.bytes()?, processor(&ids)?);
    let time = runtime.block_on(all(count, turn))?;
    let server = processor(&ids)? - worked;
    Ok(took(count, time, nodes.bytes()?.saturating_sub(before), server))
}

fn on_postgres(runtime: &Runtime, count: usize) -> Fallible<Took> {
    let url = std::env::var("HARNESS_POSTGRES_URL")
        .map_err(|_| "`HARNESS_POSTGRES_URL` is not set: it says which server to measure")?;
    let schema = name("measure")?.replace('-', "_");
    let store = runtime.block_on(PostgresStoreOptions::new().schema(&schema).connect(&url))?;
    let agent = harness(STEPS)?.agent("talks", ()).store(store);
    let server = runtime.block_on(server(&url))?;
    let worked = processor(&children(&server)?)?;
    let time = runtime.block_on(all(count, |session| {
        let run = agent.run(Talk::update(), ()).session(session);
        async move {
            match run.await? {
                Outcome::Interrupted(_) => Ok(()),
                other => Err(format!("it does not ask: {other:?}").into()),
            }
        }
    }))?;
    // Its connections are still there.
    let worked = processor(&children(&server)?)? - worked;
    let bytes = runtime.block_on(size(&url, &schema))?;
    runtime.block_on(drop_schema(&url, &schema))?;
    Ok(took(count, time, bytes, worked))
}

/// The process that has started the one of a connection.
async fn server(url: &str) -> Fallible<String> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    let own: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await?.try_get(0)?;
    let stat = std::fs::read_to_string(format!("/proc/{own}/stat"))?;
    let after = stat.rsplit(')').next().unwrap_or_default();
    Ok(after.split_whitespace().nth(1).ok_or("the server is on another machine")?.to_owned())
}

/// The tables of a schema with their indexes.
async fn size(url: &str, schema: &str) -> Fallible<u64> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    let sql = "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c \
               JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'";
    let row = client.query_one(sql, &[&schema]).await?;
    Ok(u64::try_from(row.try_get::<_, i64>(0)?)?)
}

pub(crate) fn suspended() -> Vec<Figure> {
    let measure = || -> Fallible<Vec<Figure>> {
        let (runtime, count) = (Runtime::new()?, scaled(5_000));
        let theirs = on_postgres(&runtime, count)?;
        let ours = on_restate(&runtime, count)?;
        let figure = |of: &str, unit, ours: f64, floor: f64| Figure {
            case: format!("suspended-{of}/{count}"),
            ours,
            floor,
            unit,
            ratio: ours / floor,
        };
        Ok(vec![
            figure("bytes", "bytes/session, Restate : PostgreSQL", ours.bytes, theirs.bytes),
            figure(
                "server",
                "ms of its processor/turn, Restate : PostgreSQL",
                ours.server,
                theirs.server,
            ),
            figure("turns", "turns/s, Restate : PostgreSQL", ours.a_second, theirs.a_second),
        ])
    };
    measured("suspended", measure())
}
