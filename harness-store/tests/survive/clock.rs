//! Clocks that jump, and processes whose clocks differ.

use harness::prelude::*;
use harness::store::{
    Batch, InboxSeq, NewEntry, OpenInterrupt, Page, ReadRequest, SessionStore as _, StoreError,
};
use harness::{Seq, SessionId, UtcMillis};
use harness_store::FileStore;
use serde_json::Value;

use crate::rig::{Doc, agent, answer, ask, open, sessions, states, whole};

const LONG: std::time::Duration = std::time::Duration::from_secs(600);
const HOUR: u64 = 3_600_000;

async fn page(store: &FileStore) -> Page {
    let id = SessionId::new("s").unwrap();
    store.read(&id, ReadRequest::from(Seq(1)).limit(u64::MAX)).await.unwrap().unwrap()
}

/// Writes the log again as it would be if its writer's clock had shown other times.
async fn rewrite(page: &Page, store: &FileStore, time: impl Fn(u64, u64) -> u64) {
    let id = SessionId::new("s").unwrap();
    let lease = store.claim(&id, LONG).await.unwrap().lease;
    for (place, stored) in page.entries.iter().enumerate() {
        let mut entry: Value = serde_json::from_slice(&stored.bytes).unwrap();
        let at = entry["t"].as_u64().unwrap();
        let at = time(place as u64, at);
        entry["t"] = at.into();
        let bytes = serde_json::to_vec(&entry).unwrap();
        let questions: &[OpenInterrupt] = match page.head == stored.seq {
            true => &page.interrupts,
            false => &[],
        };
        let entries = [NewEntry { bytes: &bytes, snapshot: false }];
        let batch = Batch {
            after: Seq(stored.seq.0 - 1),
            at: UtcMillis(at),
            entries: &entries,
            summary: Some(&page.summary),
            open: questions,
            flush: true,
            ..Batch::default()
        };
        store.append(&lease, batch).await.unwrap();
    }
    store.release(&lease, InboxSeq(0)).await.unwrap();
}

#[tokio::test]
async fn the_order_of_a_log_is_that_of_its_numbers_whatever_its_times() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    ask(&store, "s", 3, 2).await;
    let known = states(&sessions(&store), "s").await.unwrap();
    let page = page(&store).await;
    type Time = fn(u64, u64) -> u64;
    let times: [Time; 4] = [
        // Each entry an hour before the one that it follows; all an hour behind; all an hour ahead;
        // the clock never set.
        |place, at| at - place * HOUR,
        |_, at| at - HOUR,
        |_, at| at + HOUR,
        |_, _| 0,
    ];
    for time in times {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).await;
        rewrite(&page, &store, time).await;
        drop(store);
        let store = open(dir.path()).await;
        let look = sessions(&store);
        assert_eq!(states(&look, "s").await.unwrap(), known);
        let entries = look.history("s", Seq(0), 100).await.unwrap().entries;
        assert!(entries.iter().map(|(seq, _)| seq.0).eq(1..=page.head.0));
        let at = page.entries[1].bytes.clone();
        let at: Value = serde_json::from_slice(&at).unwrap();
        assert_eq!(
            entries[1].1.at.0,
            time(1, at["t"].as_u64().unwrap()),
            "reported as it was written"
        );
        assert_eq!(answer(&store, "s").await, whole(3, 2));
        // The next turn as well, whose times now lie elsewhere.
        let more = agent(&store).run(Doc::update(), ()).session("s").await.unwrap();
        assert!(matches!(more, Outcome::Interrupted(_)), "{more:?}");
    }
}

#[tokio::test]
async fn a_lease_does_not_ask_the_clock_on_the_wall() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    ask(&store, "s", 1, 1).await;
    let id = SessionId::new("s").unwrap();
    let lease = store.claim(&id, LONG).await.unwrap().lease;
    // Its holder writes with a clock that is an hour ahead, and then an hour behind.
    let now = UtcMillis::now().0;
    for at in [now + HOUR, now - HOUR] {
        let facts = page(&store).await.summary;
        let batch = Batch {
            after: page(&store).await.head,
            at: UtcMillis(at),
            summary: Some(&facts),
            flush: true,
            ..Batch::default()
        };
        store.append(&lease, batch).await.unwrap();
        let other = open(dir.path()).await;
        let error = other.claim(&id, LONG).await.unwrap_err();
        let StoreError::Busy { until, .. } = error else { panic!("{error}") };
        let left = until.0 - UtcMillis::now().0;
        assert!((500_000..=600_000).contains(&left), "{left} ms are left");
    }
}
