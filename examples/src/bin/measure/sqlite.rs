//! Sessions in an SQLite database: a step beside a bare insert, and many sessions at once beside one
//! after the other.

use std::cell::Cell;
use std::path::Path;
use std::time::Instant;

use harness::prelude::*;
use harness_store::SqliteStore;
use rusqlite::Connection;

use super::disk::{dir, line};
use super::growing::{self, Talk};
use super::{Figure, block_on, compare_waiting, failed, median, rounds};

/// How many sessions work at once, and how many steps each has.
const SESSIONS: usize = 1_000;
const STEPS: u64 = 10;
/// How many are timed one after the other.
const SEQUENTIAL: usize = 100;

/// A table of lines with the settings of the store: a write-ahead log, synced at every commit.
fn bare(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open(path)?;
    let mode: String =
        conn.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    let synchronous: i64 = conn.query_row("PRAGMA synchronous", [], |row| row.get(0))?;
    assert!(mode == "wal" && synchronous == 2, "{mode}, synchronous = {synchronous}");
    eprintln!("measure: the bare insert has journal_mode = {mode}, synchronous = {synchronous}");
    conn.execute_batch("CREATE TABLE IF NOT EXISTS line (at INTEGER PRIMARY KEY, text BLOB)")?;
    Ok(conn)
}

fn by_hand(conn: &Connection, steps: u64) -> rusqlite::Result<()> {
    for nth in 0..steps as usize {
        let mut insert = conn.prepare_cached("INSERT INTO line (text) VALUES (?)")?;
        insert.execute([line(nth).as_bytes()])?;
    }
    Ok(())
}

/// A run of a state that grows by a message of 200 bytes a step, each durable before the next.
pub(super) fn log() -> Vec<Figure> {
    const STEPS: u64 = 200;
    let measure = || -> Option<Figure> {
        let dir = dir().ok()?;
        let store = block_on(SqliteStore::open(dir.path().join("sessions.db"))).ok()?;
        let conn = bare(&dir.path().join("by-hand.db")).ok()?;
        let agent = growing::agent(STEPS).ok()?.store(store);
        Some(compare_waiting(
            format!("log-sqlite/{STEPS}"),
            STEPS,
            || growing::run(&agent, STEPS),
            || assert!(by_hand(&conn, STEPS).is_ok()),
        ))
    };
    vec![measure().unwrap_or_else(|| failed("log-sqlite"))]
}

async fn session(agent: Agent<(), Talk>, id: String) {
    let outcome = agent.run(Talk::update(), ()).session(id).await;
    let said = outcome.ok().and_then(|it| it.state().map(|it| it.messages.len() as u64));
    assert_eq!(said, Some(STEPS), "a session did not reach its end");
}

/// The time of a step of 1,000 sessions at once, beside that of sessions one after the other.
pub(super) fn sessions() -> Vec<Figure> {
    let measure = || -> Option<Figure> {
        let dir = dir().ok()?;
        let store = block_on(SqliteStore::open(dir.path().join("sessions.db"))).ok()?;
        let agent = growing::agent(STEPS).ok()?.store(store);
        let round = Cell::new(0);
        let timed = rounds(|| {
            let nth = round.replace(round.get() + 1);
            let begun = Instant::now();
            block_on(async {
                let run = |at| tokio::spawn(session(agent.clone(), format!("p-{nth}-{at}")));
                for task in (0..SESSIONS).map(run).collect::<Vec<_>>() {
                    assert!(task.await.is_ok(), "a session has panicked");
                }
            });
            let parallel = begun.elapsed().as_nanos() as f64 / (SESSIONS as u64 * STEPS) as f64;
            let begun = Instant::now();
            for at in 0..SEQUENTIAL {
                block_on(session(agent.clone(), format!("s-{nth}-{at}")));
            }
            let alone = begun.elapsed().as_nanos() as f64 / (SEQUENTIAL as u64 * STEPS) as f64;
            (parallel, alone)
        });
        Some(Figure {
            case: format!("sessions-sqlite/{SESSIONS}"),
            ours: median(timed.iter().map(|(parallel, _)| *parallel)),
            floor: median(timed.iter().map(|(_, alone)| *alone)),
            unit: "ns/step, at once : one by one",
            ratio: median(timed.iter().map(|(parallel, alone)| parallel / alone)),
        })
    };
    vec![measure().unwrap_or_else(|| failed("sessions-sqlite"))]
}
