//! What newer versions have written.

use harness::inspect::Filter;
use harness::prelude::*;
use harness::store::{
    Batch, InboxSeq, Lease, NewEntry, Page, Phase, ReadRequest, SessionStore as _, SessionSummary,
    StoreError,
};
use harness::{Seq, SessionId, UtcMillis};
use harness_store::FileStore;
use serde_json::json;

use crate::rig::{agent, answer, ask, files, input, open, sessions, whole};

const LONG: std::time::Duration = std::time::Duration::from_secs(600);

fn id(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

async fn claim(store: &FileStore, session: &str) -> Lease {
    store.claim(&id(session), LONG).await.unwrap().lease
}

async fn page(store: &FileStore, session: &str) -> Page {
    store.read(&id(session), ReadRequest::from(Seq(1)).limit(u64::MAX)).await.unwrap().unwrap()
}

/// Writes an entry as it is behind those of a session, and releases it.
async fn write(store: &FileStore, session: &str, after: Seq, entry: &serde_json::Value) {
    let lease = claim(store, session).await;
    let bytes = entry.to_string().into_bytes();
    let facts = json!({"agent": "writer", "phase": "running", "step": "Write"});
    let facts: SessionSummary = serde_json::from_value(facts).unwrap();
    let entries = [NewEntry { bytes: &bytes, snapshot: false }];
    let batch = Batch {
        after,
        at: UtcMillis(1),
        entries: &entries,
        summary: Some(&facts),
        flush: true,
        ..Batch::default()
    };
    store.append(&lease, batch).await.unwrap();
    store.release(&lease, InboxSeq(0)).await.unwrap();
}

#[tokio::test]
async fn entries_of_newer_versions_are_left_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    ask(&store, "other", 1, 1).await;
    let opened = json!({"t": 1, "open": {"v": 2, "whatever": ["comes"]}});
    write(&store, "v2", Seq(0), &opened).await;
    let kinds = [
        ("unknown", json!({"t": 1, "wibble": {}}), true),
        ("snapshot", json!({"t": 1, "snapshot": {"session": {"v": 9}}}), true),
        ("notified", json!({"t": 1, "notified": {}}), false),
    ];
    for (name, entry, _) in &kinds {
        ask(&store, name, 1, 1).await;
        let head = page(&store, name).await.head;
        write(&store, name, head, entry).await;
    }
    drop(store);

    let store = open(dir.path()).await;
    let (look, agent) = (sessions(&store), agent(&store));
    let names = kinds.iter().map(|(name, _, newer)| (*name, *newer)).chain([("v2", true)]);
    for (name, newer) in names {
        let before = page(&store, name).await;
        let error = look.status(name).await.unwrap_err();
        let replay = error.replay_error().unwrap();
        assert_eq!((replay.is_newer(), replay.seq()), (true, Some(before.head)), "{name}: {error}");
        assert!(!error.is_damaged(), "{name}");
        assert!(look.state_at(name, before.head).await.unwrap_err().replay_error().is_some());
        let history = look.history(name, Seq(0), 100).await;
        assert_eq!(history.is_err(), newer, "{name}: the name of an entry can be reported");
        if before.head > Seq(1) {
            // What was before it can be looked at all the same.
            look.state_at(name, Seq(before.head.0 - 1)).await.unwrap();
        }
        let error = agent.resume(name, Answers::none(), ()).await.unwrap_err();
        assert!(error.replay_error().is_some_and(|replay| replay.is_newer()), "{name}: {error}");
        let error = agent.run(input(1, 1), ()).session(name).await.unwrap_err();
        assert!(error.replay_error().is_some_and(|replay| replay.is_newer()), "{name}: {error}");
        let after = page(&store, name).await;
        assert_eq!((&after.entries, after.holder), (&before.entries, None), "{name}");
        assert_eq!(after.summary, before.summary);
    }
    // They are listed, and keep no caller from the others.
    let rows = look.list(&Filter::sessions(), None, 100).await.unwrap().rows;
    assert_eq!(rows.len(), kinds.len() + 2);
    let inbox = look.list_interrupts(&Filter::default(), None, 100).await.unwrap();
    assert_eq!(inbox.rows.len(), 1);
    assert_eq!(inbox.rows[0].session.as_str(), "other");
    assert_eq!(inbox.unreadable.len(), kinds.len());
    assert_eq!(answer(&store, "other").await, whole(1, 1));
}

#[tokio::test]
async fn files_of_newer_versions_are_left_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    ask(&store, "newer", 1, 1).await;
    let path = files(dir.path(), "log").remove(0);
    ask(&store, "other", 1, 1).await;
    drop(store);
    let body = "H2 whatever comes";
    let newer = format!("\n{:08x}{body}\n", crc32fast::hash(body.as_bytes()));
    // With the note of the version before beside it, and without.
    for noted in [true, false] {
        if !noted {
            std::fs::remove_file(path.with_extension("checkpoint")).unwrap();
        }
        std::fs::write(&path, &newer).unwrap();
        let store = open(dir.path()).await;
        let (look, agent) = (sessions(&store), agent(&store));
        let is_newer = |error: Option<&StoreError>| {
            matches!(error, Some(StoreError::NewerFormat { found: 2, known: 1 }))
        };
        let error = look.status("newer").await.unwrap_err();
        assert!(is_newer(error.store_error()) && !error.is_damaged(), "{error}");
        let error = look.history("newer", Seq(0), 1).await.unwrap_err();
        assert!(is_newer(error.store_error()), "{error}");
        let error = look.delete("newer").await.unwrap_err();
        assert!(is_newer(error.store_error()), "{error}");
        let error = agent.resume("newer", Answers::none(), ()).await.unwrap_err();
        assert!(is_newer(error.store_error()), "{error}");
        let error = agent.run(input(1, 1), ()).session("newer").await.unwrap_err();
        assert!(is_newer(error.store_error()), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), newer);
        let rows = look.list(&Filter::sessions().phase(Phase::Interrupted), None, 100).await;
        let rows = rows.unwrap().rows;
        assert!(rows.iter().any(|row| row.session.as_str() == "other"), "{rows:?}");
    }
    assert_eq!(answer(&open(dir.path()).await, "other").await, whole(1, 1));
}
