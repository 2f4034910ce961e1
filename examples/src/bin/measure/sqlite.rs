//! Sessions in an SQLite database: a step beside a bare insert, and many sessions at once beside one
//! after the other.

use std::path::Path;

use harness_store::SqliteStore;
use rusqlite::Connection;

use super::at_once::at_once;
use super::disk::{dir, line};
use super::growing;
use super::{Figure, block_on, compare_waiting, failed};

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

/// The time of a step of 1,000 sessions at once, beside that of sessions one after the other.
pub(super) fn sessions() -> Vec<Figure> {
    let measure = || -> Option<Figure> {
        let dir = dir().ok()?;
        let store = block_on(SqliteStore::open(dir.path().join("sessions.db"))).ok()?;
        at_once("sessions-sqlite", store)
    };
    vec![measure().unwrap_or_else(|| failed("sessions-sqlite"))]
}
