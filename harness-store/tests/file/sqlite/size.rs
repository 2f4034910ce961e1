//! How many bytes, and how many rows.

use std::time::{Duration, Instant};

use harness::Seq;
use harness::store::{
    Batch, Filter, InboxSeq, NewEntry, Phase, ReadRequest, Remove, SessionStore as _,
};

use super::{append, claim, open};
use crate::shared_size;
use crate::support::id;

#[tokio::test]
async fn a_state_of_50_megabytes_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let lease = claim(&store, &id("x")).await;
    let large = vec![7; 50 << 20];
    let large = [NewEntry { bytes: &large, snapshot: true }];
    let batch = |after, entries| Batch {
        after: Seq(after),
        entries,
        summary: None,
        flush: true,
        ..Batch::default()
    };
    append(&store, &lease, 0, b"begins", Some(Phase::Running)).await.unwrap();
    store.append(&lease, batch(1, &large)).await.unwrap();
    append(&store, &lease, 2, b"after", None).await.unwrap();
    store.release(&lease, InboxSeq(0)).await.unwrap();
    let other = open(dir.path()).await;
    let lease = claim(&other, &id("x")).await;
    let found = other.read(&id("x"), ReadRequest::from_snapshot()).await.unwrap().unwrap();
    assert_eq!((found.entries.len(), found.next), (1, Some(Seq(3))));
    assert_eq!(found.entries[0].bytes, large[0].bytes);
    // What a new snapshot replaces is taken away, and its space is used again.
    let length = || std::fs::metadata(super::database(dir.path())).unwrap().len();
    for round in 0..4 {
        other.append(&lease, batch(3 + round, &large)).await.unwrap();
        other.remove(&lease, Remove::Below(Seq(4 + round))).await.unwrap();
    }
    assert!(length() < 170 << 20, "{}", length());
}

#[tokio::test]
async fn a_log_of_100_000_entries_is_read_and_pruned() {
    let dir = tempfile::tempdir().unwrap();
    shared_size::long_log(open(dir.path()).await).await;
}

#[tokio::test]
async fn ten_thousand_open_interrupts_are_listed_by_page_and_answered_at_once() {
    let dir = tempfile::tempdir().unwrap();
    shared_size::many_interrupts(open(dir.path()).await).await;
}

/// `HARNESS_STORE_SESSIONS=100000` makes as many as a busy machine holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_many_sessions_takes_as_long_as_one_of_few() {
    let sessions: usize =
        std::env::var("HARNESS_STORE_SESSIONS").map_or(5_000, |count| count.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let make = |number: usize| {
        let store = store.clone();
        async move {
            let lease = claim(&store, &id(&format!("session {number:06}"))).await;
            let phase = if number.is_multiple_of(1_000) { Phase::Failed } else { Phase::Waiting };
            append(&store, &lease, 0, b"{}", Some(phase)).await.unwrap();
            store.release(&lease, InboxSeq(0)).await.unwrap();
        }
    };
    let begun = Instant::now();
    for chunk in (0..sessions).collect::<Vec<_>>().chunks(1_000) {
        let tasks: Vec<_> = chunk.iter().map(|number| tokio::spawn(make(*number))).collect();
        for task in tasks {
            task.await.unwrap();
        }
    }
    println!("made {sessions} in {:?}", begun.elapsed());
    let (mut after, mut seen, mut slowest) = (None, 0, Duration::ZERO);
    loop {
        let begun = Instant::now();
        let filter = Filter::sessions().phase(Phase::Waiting);
        let listing = store.list(&filter, after.as_deref(), 50).await.unwrap();
        slowest = slowest.max(begun.elapsed());
        seen += listing.rows.len();
        after = listing.next;
        if after.is_none() {
            break;
        }
    }
    println!("the slowest page of 50 of {seen} took {slowest:?}");
    assert_eq!(seen, sessions - sessions.div_ceil(1_000));
    let failed = store.list(&Filter::sessions().phase(Phase::Failed), None, 1_000).await.unwrap();
    assert_eq!(failed.rows.len(), sessions.div_ceil(1_000));
    // No page looks at rows that are not on it: SQLite finds each by an index, in its order.
    let conn = super::raw(dir.path());
    for conditions in [
        "head > 0 AND id > x'61'",
        "head > 0 AND agent = x'61' AND id > x'61'",
        "head > 0 AND phase = 3 AND id > x'61'",
        "head > 0 AND agent = x'61' AND phase = 3 AND id > x'61'",
        "open > 0 AND id >= x'61'",
        "open > 0 AND agent = x'61' AND id >= x'61'",
    ] {
        let plan = format!(
            "EXPLAIN QUERY PLAN SELECT *, id FROM session WHERE {conditions} ORDER BY id LIMIT 9"
        );
        let mut select = conn.prepare(&plan).unwrap();
        let rows = select.query_map([], |row| row.get::<_, String>(3)).unwrap();
        let plan: Vec<String> = rows.map(Result::unwrap).collect();
        assert!(plan.len() == 1 && plan[0].starts_with("SEARCH"), "{conditions}: {plan:?}");
        println!("{conditions}: {}", plan[0]);
    }
}
