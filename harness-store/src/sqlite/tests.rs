//! What is decided on the thread that writes, and versions of the tables.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use harness::store::{
    Batch, InboxSeq, Lease, NewEntry, Phase, SessionStore as _, SessionSummary, StoreError,
};
use harness::{Seq, SessionId};
use rusqlite::Connection;

use super::schema::{self, FORMAT, VERSIONS};
use super::{SqliteStore, SqliteStoreOptions};
use crate::local::Sync;

const LONG: Duration = Duration::from_secs(600);

fn id(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

fn summary() -> SessionSummary {
    let summary = serde_json::json!({"agent": "a", "phase": Phase::Running, "step": "S"});
    serde_json::from_value(summary).unwrap()
}

async fn append(
    store: &SqliteStore,
    lease: &Lease,
    after: u64,
    bytes: &[u8],
) -> Result<u64, StoreError> {
    let (summary, entries) = (summary(), [NewEntry { bytes, snapshot: false }]);
    let batch = Batch {
        after: Seq(after),
        entries: &entries,
        summary: Some(&summary),
        flush: true,
        ..Batch::default()
    };
    store.append(lease, batch).await.map(|done| done.head.0)
}

async fn open(dir: &Path) -> SqliteStore {
    SqliteStore::open(dir.join("s.db")).await.unwrap()
}

async fn claim(store: &SqliteStore, name: &str) -> Lease {
    store.claim(&id(name), LONG).await.unwrap().lease
}

/// Keeps the writer at work until the sender is dropped, so that whatever is called meanwhile comes
/// into one group.
async fn busy(store: &SqliteStore) -> mpsc::Sender<()> {
    let (release, released) = mpsc::channel::<()>();
    let (entered, at_work) = mpsc::channel();
    let shared = store.shared.clone();
    tokio::spawn(async move {
        let wait = move |_: &Connection| {
            let _ = entered.send(());
            let _ = released.recv();
            Ok(())
        };
        shared.write(&id("gate"), false, 0, wait).await
    });
    while at_work.try_recv().is_err() {
        tokio::task::yield_now().await;
    }
    release
}

/// Lets each task on this thread come to its first wait.
async fn all_are_waiting() {
    tokio::task::yield_now().await;
}

fn flushes(path: &Path) -> i64 {
    let conn = Connection::open(path).unwrap();
    conn.query_row("SELECT flushes FROM store", [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn what_waits_shares_a_transaction_and_is_answered_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let path = dir.path().join("s.db");
    let gate = busy(&store).await;
    // The second of them looks for what the first has written: it is not committed yet.
    let (first, second) = (store.shared.clone(), store.shared.clone());
    let write = tokio::spawn(async move {
        let write = |conn: &Connection| {
            conn.execute("UPDATE store SET flushes = 100", [])?;
            Ok(())
        };
        first.write(&id("a"), true, 1, write).await
    });
    all_are_waiting().await;
    let looks = path.clone();
    let look = tokio::spawn(async move {
        second.write(&id("b"), false, 1, move |_: &Connection| Ok(flushes(&looks))).await
    });
    all_are_waiting().await;
    assert!(!write.is_finished(), "it is answered before its commit");
    drop(gate);
    write.await.unwrap().unwrap();
    assert_eq!(look.await.unwrap().unwrap(), 0);
    assert_eq!(flushes(&path), 100);
}

#[tokio::test]
async fn a_call_that_fails_in_a_group_leaves_its_neighbours_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let leases = [claim(&store, "a").await, claim(&store, "b").await, claim(&store, "c").await];
    let gate = busy(&store).await;
    let spawn = |at: usize, bytes: usize| {
        let (store, lease) = (store.clone(), leases[at].clone());
        tokio::spawn(async move { append(&store, &lease, 0, &vec![7; bytes]).await })
    };
    let shared = store.shared.clone();
    // From here on the database can grow by 100 pages.
    let limit = tokio::spawn(async move {
        let limit = |conn: &Connection| {
            let pages: i64 = conn.query_row("PRAGMA page_count", [], |row| row.get(0))?;
            conn.query_row(&format!("PRAGMA max_page_count = {}", pages + 100), [], |_| Ok(()))?;
            Ok(())
        };
        shared.write(&id("x"), false, 0, limit).await
    });
    all_are_waiting().await;
    let (before, large) = (spawn(0, 10), spawn(1, 1_000_000));
    all_are_waiting().await;
    let after = spawn(2, 10);
    all_are_waiting().await;
    drop(gate);
    limit.await.unwrap().unwrap();
    assert_eq!(before.await.unwrap().unwrap(), 1);
    let full = large.await.unwrap();
    assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
    assert_eq!(after.await.unwrap().unwrap(), 1);
    // Nothing of it is there, and it can be appended once there is room.
    assert_eq!(append(&store, &leases[1], 0, b"small").await.unwrap(), 1);
}

#[tokio::test]
async fn a_call_whose_future_is_dropped_has_its_full_effect_or_none() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let lease = claim(&store, "a").await;
    drop(append(&store, &lease, 0, b"never polled"));
    let gate = busy(&store).await;
    let polled = tokio::spawn({
        let (store, lease) = (store.clone(), lease.clone());
        async move { append(&store, &lease, 0, b"polled").await }
    });
    all_are_waiting().await;
    polled.abort();
    assert!(polled.await.unwrap_err().is_cancelled());
    drop(gate);
    // The same batch is a repetition: it was appended, once.
    assert_eq!(append(&store, &lease, 0, b"polled").await.unwrap(), 1);
    let other = append(&store, &lease, 0, b"other").await;
    assert!(matches!(other, Err(StoreError::Conflict { head: Seq(1), .. })), "{other:?}");
}

#[tokio::test]
async fn a_flush_that_writes_nothing_syncs_what_was_written_before() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let lease = claim(&store, "a").await;
    append(&store, &lease, 0, b"1").await.unwrap();
    let path = dir.path().join("s.db");
    assert_eq!(flushes(&path), 0);
    let nothing = Batch { after: Seq(1), flush: true, ..Batch::default() };
    store.append(&lease, nothing).await.unwrap();
    assert_eq!(flushes(&path), 1);
    store.append(&lease, Batch { flush: false, ..nothing }).await.unwrap();
    assert_eq!(flushes(&path), 1);
    // Where nothing is synced there is nothing to do.
    let never = SqliteStoreOptions::new().sync(Sync::Never).open(&path).await.unwrap();
    never.append(&lease, nothing).await.unwrap();
    assert_eq!(flushes(&path), 1);
}

#[tokio::test]
async fn while_another_process_writes_for_too_long_a_call_fails_without_an_effect() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let options = SqliteStoreOptions::new().busy_timeout(Duration::from_millis(50));
    let store = options.open(&path).await.unwrap();
    let lease = claim(&store, "a").await;
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let locked = append(&store, &lease, 0, b"1").await;
    assert!(matches!(&locked, Err(StoreError::Unavailable { ambiguous: false, .. })), "{locked:?}");
    // A reader does not wait.
    assert_eq!(store.read(&id("a"), harness::store::ReadRequest::summary()).await.unwrap(), None);
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(append(&store, &lease, 0, b"1").await.unwrap(), 1);
}

const NEXT: &str = "ALTER TABLE store ADD COLUMN next INTEGER NOT NULL DEFAULT 5";

#[tokio::test]
async fn an_older_database_is_migrated_and_a_newer_one_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let lease = claim(&store, "a").await;
    append(&store, &lease, 0, b"1").await.unwrap();
    let conn = Connection::open(dir.path().join("s.db")).unwrap();
    let versions = [VERSIONS, &[NEXT]].concat();
    // One that fails halfway changes nothing.
    let wrong = [&versions[..], &["CREATE TABLE half (a)", "no SQL"]].concat();
    assert!(schema::migrate(&conn, &wrong).is_err());
    append(&store, &lease, 1, b"2").await.unwrap();
    schema::migrate(&conn, &versions).unwrap();
    schema::migrate(&conn, &versions).unwrap();
    let next: i64 = conn.query_row("SELECT next FROM store", [], |row| row.get(0)).unwrap();
    assert_eq!(next, 5);
    let heads: i64 = conn.query_row("SELECT head FROM session", [], |row| row.get(0)).unwrap();
    assert_eq!(heads, 2);
    let is_newer = |error: &StoreError| {
        matches!(error, StoreError::NewerFormat { found, known }
            if (*found, *known) == (FORMAT + 1, FORMAT))
    };
    // Also by a store that was open before.
    let refused = append(&store, &lease, 2, b"3").await.unwrap_err();
    assert!(is_newer(&refused), "{refused}");
    let refused = store.claim(&id("b"), LONG).await.unwrap_err();
    assert!(is_newer(&refused), "{refused}");
    let refused = SqliteStore::open(dir.path().join("s.db")).await.unwrap_err();
    assert!(is_newer(&refused), "{refused}");
}

/// A database as the first version made it.
const FIRST_VERSION: &str = "
DROP INDEX session_due;
ALTER TABLE session DROP COLUMN due;
ALTER TABLE session DROP COLUMN read;
PRAGMA user_version = 1;
";

#[tokio::test]
async fn what_is_due_in_a_database_of_the_first_version_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let agent = harness::id::AgentId::new("a");
    let put = async |name: &str, phase, due: Option<u64>, messages: u64, counted: u64| {
        let lease = claim(&store, name).await;
        let mut summary = SessionSummary::new(agent.clone(), phase, "S");
        summary.due = due.map(harness::UtcMillis);
        summary.inbox = InboxSeq(counted);
        let entries = [NewEntry { bytes: b"1", snapshot: false }];
        let batch = Batch { entries: &entries, summary: Some(&summary), ..Batch::default() };
        store.append(&lease, batch).await.unwrap();
        for message in 0..messages {
            let message = harness::store::Message::new(message.to_string(), "d", "b");
            store.send(&lease.session, &[message]).await.unwrap();
        }
        store.release(&lease, InboxSeq(0)).await.unwrap();
    };
    put("crashed", Phase::Running, None, 0, 0).await;
    put("timed", Phase::Interrupted, Some(7), 0, 0).await;
    put("later", Phase::Interrupted, Some(u64::MAX), 0, 0).await;
    put("ended", Phase::Ended, None, 2, 2).await;
    put("written to", Phase::Ended, None, 2, 1).await;
    drop(store);
    let conn = Connection::open(dir.path().join("s.db")).unwrap();
    conn.execute_batch(FIRST_VERSION).unwrap();
    drop(conn);
    let store = open(dir.path()).await;
    let request = harness::store::DueRequest::new([agent]).limit(9);
    let due = store.claim_due(&request, LONG).await.unwrap();
    let mut found: Vec<_> =
        due.claimed.iter().map(|claimed| claimed.lease.session.as_str()).collect();
    found.sort_unstable();
    assert_eq!(found, ["crashed", "timed", "written to"]);
}

/// What one of them sees of the tables while another makes them is not taken for another program's.
#[test]
fn stores_that_make_one_database_at_once_all_open() {
    const STORES: usize = 8;
    let options = SqliteStoreOptions::new().sync(Sync::Never).readers(1);
    for _ in 0..40 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.db");
        let start = std::sync::Barrier::new(STORES);
        std::thread::scope(|threads| {
            let open = || {
                start.wait();
                super::open::open(&path, &options).map(drop)
            };
            let opened: Vec<_> = (0..STORES).map(|_| threads.spawn(open)).collect();
            for opened in opened {
                opened.join().unwrap().unwrap();
            }
        });
    }
}

#[tokio::test]
async fn what_is_no_database_of_the_store_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch("CREATE TABLE person (name TEXT); INSERT INTO person VALUES ('x')")
        .unwrap();
    drop(other);
    for content in [std::fs::read(&path).unwrap(), b"a text that is long enough ".repeat(50)] {
        std::fs::write(&path, &content).unwrap();
        let refused = SqliteStore::open(&path).await.unwrap_err();
        assert!(matches!(&refused, StoreError::Unsuitable(_)), "{refused}");
        assert_eq!(std::fs::read(&path).unwrap(), content);
        let files = std::fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(files, 1, "files were left beside it");
    }
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("elsewhere", &path).unwrap();
    let refused = SqliteStore::open(&path).await.unwrap_err();
    assert!(matches!(&refused, StoreError::Unsuitable(_)), "{refused}");
}

#[tokio::test]
async fn only_its_user_can_read_the_files_of_a_store_and_debug_shows_no_session() {
    use std::os::unix::fs::PermissionsExt as _;

    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("made")).await;
    claim(&store, "secret").await;
    for file in std::fs::read_dir(dir.path().join("made")).unwrap() {
        let file = file.unwrap();
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{:?} has mode {mode:o}", file.path());
    }
    assert!(!format!("{store:?}").contains("secret"));
}
