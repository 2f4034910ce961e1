//! Over SQLite: many sessions, and a database that is locked.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use harness::id::AgentId;
use harness::store::{Batch, NewEntry, Phase, SessionStore, SessionSummary};
use harness::{SessionId, Sessions, UtcMillis};
use harness_store::{SqliteStoreOptions, Sync};
use rusqlite::Connection;

use super::rig::{Rig, waiting};

/// A session with one entry, which its run still holds.
async fn listed(store: &dyn SessionStore, id: String, agent: &str, phase: Phase) {
    let session = SessionId::new(id).unwrap();
    let lease = store.claim(&session, Duration::from_secs(600)).await.unwrap().lease;
    let summary = SessionSummary::new(AgentId::new(agent), phase, "step");
    let entries = [NewEntry { bytes: b"{}", snapshot: false }];
    let (summary, at) = (Some(&summary), UtcMillis::now());
    let batch = Batch { at, entries: &entries, summary, ..Batch::default() };
    store.append(&lease, batch).await.unwrap();
}

/// An inspector over so many sessions; one of ten is rare, and failed.
async fn many(dir: &tempfile::TempDir, sessions: u32) -> Rig {
    let options = SqliteStoreOptions::new().sync(Sync::Never);
    let store = Arc::new(options.open(dir.path().join("s.db")).await.unwrap());
    let all = (0..sessions).map(|nth| {
        let (agent, phase) = match nth % 10 {
            0 => ("rare", Phase::Failed),
            _ => ("often", Phase::Ended),
        };
        listed(&*store, format!("s-{nth:06}"), agent, phase)
    });
    // The store writes those that wait together.
    futures_util::stream::iter(all).buffer_unordered(2_000).collect::<Vec<()>>().await;
    Rig::over(store, |it| it).await
}

/// The sessions of a page, and the address of the next one.
async fn page(rig: &Rig, path: &str) -> (Vec<String>, Option<String>) {
    let body = rig.get(path).await.body;
    let rows = body.split("href=\"/session?id=").skip(1);
    let rows = rows.map(|row| row.split('"').next().unwrap().to_owned()).collect();
    let next = body.split_once("rel=\"next\" href=\"");
    let next = next.map(|(_, next)| next.split('"').next().unwrap().replace("&amp;", "&"));
    (rows, next)
}

/// How many different sessions there are on all pages, and how many pages.
async fn walk(rig: &Rig, first: &str) -> (usize, usize) {
    let (mut next, mut seen, mut pages) = (Some(first.to_owned()), BTreeSet::new(), 0);
    while let Some(path) = next {
        let (rows, after) = page(rig, &path).await;
        pages += 1;
        for row in rows {
            assert!(seen.insert(row), "{path} repeats a session");
        }
        next = after;
    }
    (seen.len(), pages)
}

#[tokio::test]
async fn lists_are_read_page_by_page_and_searched() {
    let dir = tempfile::tempdir().unwrap();
    let rig = many(&dir, 230).await;
    assert_eq!(walk(&rig, "/").await, (230, 5));
    assert_eq!(walk(&rig, "/?agent=rare").await, (23, 1));
    assert_eq!(walk(&rig, "/?phase=ended").await, (207, 5));
    assert_eq!(walk(&rig, "/?id=s-0001").await, (100, 2));
    assert_eq!(walk(&rig, "/?id=s-0001&phase=failed").await, (10, 1));
    assert_eq!(walk(&rig, "/?id=s-000229").await, (1, 1));
    assert_eq!(walk(&rig, "/?id=t").await, (0, 1));
    // The list has more rows after the last page, and none of them matches.
    assert_eq!(walk(&rig, "/?id=s-0000").await, (100, 2));
    assert_eq!(rig.get("/?after=zz").await.status, 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_sessions_are_on_pages() {
    let dir = tempfile::tempdir().unwrap();
    let rig = many(&dir, 100_000).await;
    // Each page has its rows, in order and without a gap, also at the end of the list.
    for (first, from) in [("/", 0), ("/?id=s-05", 50_000), ("/?id=s-099", 99_000)] {
        let (mut path, mut nth) = (first.to_owned(), from);
        for _ in 0..3 {
            let (rows, next) = page(&rig, &path).await;
            let wanted: Vec<_> = (nth..nth + 50).map(|nth| format!("s-{nth:06}")).collect();
            assert_eq!(rows, wanted, "{path}");
            (path, nth) = (next.unwrap(), nth + 50);
        }
    }
    assert_eq!(walk(&rig, "/?id=s-0999").await, (100, 2));
    assert_eq!(walk(&rig, "/?id=s-099&agent=rare&phase=failed").await, (100, 2));
}

#[tokio::test]
async fn a_locked_database_is_read_and_refuses_forms_for_a_while() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let options = SqliteStoreOptions::new().busy_timeout(Duration::from_millis(20));
    let store = Arc::new(options.open(&path).await.unwrap());
    let rig = Rig::over(store, |it| it.allow_answers()).await;
    waiting(&rig, "t-1").await;
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();

    // Readers do not wait for a writer.
    for path in ["/", "/waiting", "/session?id=t-1", "/session/state?id=t-1&seq=1"] {
        assert_eq!(rig.get(path).await.status, 200, "{path}");
    }
    let form = rig.get("/session?id=t-1").await;
    let (token, interrupt) = (form.hidden("token"), form.hidden("interrupt"));
    let head = Sessions::shared(Arc::clone(&rig.store)).status("t-1").await.unwrap().head;
    let head = head.to_string();
    let common = [("token", &*token), ("id", "t-1")];
    let of = |fields: &[(&'static str, &'static str)]| {
        let fields = fields.iter().map(|(name, value)| (*name, (*value).to_owned()));
        fields.collect::<Vec<_>>()
    };
    let forms = [
        ("/session/input", of(&[("update", "{}")])),
        ("/session/fork", [of(&[("to", "t-2")]), vec![("seq", head)]].concat()),
        (
            "/session/answer",
            [of(&[("by", "ada"), ("a?", "0")]), vec![("interrupt", interrupt)]].concat(),
        ),
    ];
    for locked in [true, false] {
        for (path, fields) in &forms {
            let fields = fields.iter().map(|(name, value)| (*name, &**value));
            let fields: Vec<_> = common.into_iter().chain(fields).collect();
            let got = rig.post(path, &fields).await;
            if !locked {
                assert_eq!(got.status, 303, "{path}: {}", got.body);
                continue;
            }
            assert_eq!((got.status, got.header("retry-after")), (503, Some("1")), "{path}");
            for said in ["has the database locked", "Nothing was changed", "Try again"] {
                assert!(got.body.contains(said), "{path}: {}", got.body);
            }
        }
        if locked {
            other.execute_batch("ROLLBACK").unwrap();
        }
    }
}
