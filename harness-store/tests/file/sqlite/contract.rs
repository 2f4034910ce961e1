use std::path::Path;
use std::process::Command;

use harness::SessionId;
use harness::testing::{Contract, Damage, child_worker};
use harness_store::{SqliteStore, SqliteStoreOptions, Sync};
use rusqlite::params;

use super::{database, open, raw};
use crate::shared_contract;

const CHILD: &str = "HARNESS_STORE_CONTRACT_DATABASE";

/// Each handle is a store of its own on the same database, as if in a process of its own.
fn contract(dir: &Path, sync: Sync) -> Contract {
    let path = database(dir);
    Contract::new(move || {
        let path = path.clone();
        async move { SqliteStoreOptions::new().sync(sync).open(path).await.unwrap() }
    })
    .max_batch(SqliteStore::MAX_BATCH)
}

/// What the trait of stores does not say how to do.
fn outside(contract: Contract, dir: &Path) -> Contract {
    let [damaged, looked_at, shared] = [dir.to_owned(), dir.to_owned(), dir.to_owned()];
    contract
        .damage(move |session, how| {
            let dir = damaged.clone();
            async move { damage(&dir, &session, how) }
        })
        .stored(move |session| {
            let dir = looked_at.clone();
            async move { stored(&dir, &session) }
        })
        .child(move |_| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "sqlite::contract::child", "--nocapture", "--test-threads=1"]);
            command.env(CHILD, &shared);
            command
        })
}

/// A byte of the second entry. A tail cannot be cut: SQLite drops what of its log is not whole. A
/// newer format is one of the whole database.
fn damage(dir: &Path, session: &SessionId, how: Damage) -> bool {
    if !matches!(how, Damage::Flip) {
        return false;
    }
    let changed = raw(dir).execute(
        "UPDATE batch SET entries = CAST(replace(CAST(entries AS TEXT), 'second', 'tecond') AS BLOB)
         WHERE instr(entries, CAST('second entry' AS BLOB)) AND place >> 32 =
         (SELECT key FROM session WHERE id = ?)",
        [session.as_str().as_bytes()],
    );
    changed.unwrap() == 1
}

/// The rows of a session as text, its lease left out.
pub(crate) fn stored(dir: &Path, session: &SessionId) -> Vec<u8> {
    let conn = raw(dir);
    let mut text = Vec::new();
    for select in [
        "SELECT hex(id) || '|' || made || '|' || fence || '|' || head || '|' || inbox || '|' || sum
         FROM session WHERE id = ?",
        "SELECT place || '|' || hex(entries) || '|' || sum FROM batch
         WHERE place >> 32 = (SELECT key FROM session WHERE id = ?) ORDER BY place",
        "SELECT place || '|' || hex(key) || '|' || hex(body) FROM message
         WHERE session = (SELECT key FROM session WHERE id = ?) ORDER BY place",
    ] {
        let mut select = conn.prepare(select).unwrap();
        let rows = select.query_map(params![session.as_str().as_bytes()], |row| row.get(0));
        for row in rows.unwrap() {
            let row: String = row.unwrap();
            text.extend(row.bytes().chain([b'\n']));
        }
    }
    text
}

/// What another process does that the suite has started; nothing if this is not one.
#[tokio::test]
async fn child() {
    if let Some(dir) = std::env::var_os(CHILD) {
        child_worker(SqliteStore::open(database(Path::new(&dir))).await.unwrap()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_clause_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let report = outside(contract(dir.path(), Sync::Flush), dir.path()).run().await;
    shared_contract::is_kept_by_a_database(&report);
}

#[tokio::test]
async fn every_clause_is_kept_without_syncs_on_one_thread() {
    let dir = tempfile::tempdir().unwrap();
    contract(dir.path(), Sync::Never).check().await;
}

#[tokio::test]
async fn clones_of_a_store_share_its_leases() {
    let dir = tempfile::tempdir().unwrap();
    shared_contract::by_clones(open(dir.path()).await).await;
}

#[tokio::test]
async fn every_clause_is_kept_inside_a_store_whose_calls_may_fail() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    let open = move || {
        let path = path.clone();
        async move { open(&path).await }
    };
    shared_contract::where_calls_may_fail(open).await;
}
