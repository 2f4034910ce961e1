//! Large sessions, and lists whose pages cost the same however many sessions there are.

use harness::store::{
    Batch, Filter, NewEntry, Phase, ReadRequest, Remove, SessionStore as _, StoreError,
};
use harness::{Seq, UtcMillis};

use crate::place::{Place, append, claim, page};
use crate::support::{id, summary};

fn agent_id(text: &str) -> harness::id::AgentId {
    serde_json::from_value(text.into()).unwrap()
}

#[tokio::test]
async fn a_state_of_50_mb_is_kept_and_read_back() {
    let place = Place::new("size_state").await;
    let store = place.open().await;
    let lease = claim(&store, &id("x")).await;
    let bytes: Vec<u8> =
        (0..50_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    append(&store, &lease, 0, &bytes).await.unwrap();
    append(&store, &lease, 1, b"two").await.unwrap();
    let page = page(&store, &id("x")).await;
    assert!(page.entries[0].bytes == bytes);
    assert_eq!(page.entries[1].bytes, b"two");
    let first = store.read(&id("x"), ReadRequest::from(Seq(1)).limit(1)).await.unwrap().unwrap();
    assert_eq!((first.entries.len(), first.next), (1, Some(Seq(2))));
}

#[tokio::test]
async fn ids_that_an_index_does_not_take_are_refused() {
    let place = Place::new("size_ids").await;
    let store = place.open().await;
    let lease = claim(&store, &id("x")).await;
    let mut summary = summary(Phase::Running);
    summary.agent = agent_id(&"a".repeat(1_025));
    let entries = [NewEntry { bytes: b"one", snapshot: false }];
    let batch = Batch { entries: &entries, summary: Some(&summary), ..Batch::default() };
    let refused = store.append(&lease, batch).await;
    assert!(matches!(refused, Err(StoreError::TooLarge { bytes: 1_025, limit: 1_024 })));
}

/// The server has no statistics of these tables yet: plans do not depend on them.
#[tokio::test]
async fn pages_in_the_middle_of_100_000_sessions_that_wait() {
    let place = Place::new("size_list").await;
    let store = place.open().await;
    let summary = serde_json::to_string(&summary(Phase::Interrupted)).unwrap();
    place
        .run(&format!(
            "INSERT INTO session (id, written, head, has_open, agent, phase, summary)
             SELECT convert_to('s' || lpad(n::text, 6, '0'), 'UTF8'), true, 1, true,
                 convert_to('a' || n % 3, 'UTF8'), 2, '{summary}'
             FROM generate_series(1, 100000) n;
             INSERT INTO interrupt SELECT key, 'q', 5, NULL FROM session"
        ))
        .await;
    for filter in [
        Filter::sessions(),
        Filter::sessions().agent(agent_id("a1")),
        Filter::sessions().phase(Phase::Interrupted),
        Filter::sessions().agent(agent_id("a1")).phase(Phase::Interrupted),
        Filter::interrupts(),
        Filter::interrupts().agent(agent_id("a1")),
    ] {
        let after = b"s090000".to_vec();
        let begun = std::time::Instant::now();
        let listing = store.list(&filter, Some(&after), 100).await.unwrap();
        assert_eq!(listing.rows.len(), 100, "{filter:?}");
        assert!(listing.next.is_some());
        // The key of a session comes before those of its interrupts.
        let first = listing.rows[0].session.as_str();
        assert!(first > "s090000" || filter.interrupts && first == "s090000", "{first}");
        let took = begun.elapsed();
        assert!(took < std::time::Duration::from_secs(5), "{filter:?} took {took:?}");
    }
}

#[tokio::test]
async fn pages_of_a_long_log_and_its_pruning() {
    let place = Place::new("size_log").await;
    let store = place.open().await;
    let lease = claim(&store, &id("x")).await;
    let summary = summary(Phase::Running);
    let bytes: Vec<Vec<u8>> = (0..10_000_u32).map(|at| at.to_be_bytes().to_vec()).collect();
    for (round, after) in (0..10).map(|round| (round, round * 10_000)) {
        let entries: Vec<_> = bytes
            .iter()
            .enumerate()
            .map(|(at, bytes)| NewEntry { bytes, snapshot: round == 8 && at == 4_999 })
            .collect();
        let batch = Batch {
            after: Seq(after),
            at: UtcMillis(after),
            entries: &entries,
            summary: Some(&summary),
            ..Batch::default()
        };
        store.append(&lease, batch).await.unwrap();
    }
    let all = page(&store, &id("x")).await;
    assert_eq!((all.entries.len(), all.head), (100_000, Seq(100_000)));
    store.remove(&lease, Remove::Below(Seq(100_000))).await.unwrap();
    let kept = store.read(&id("x"), ReadRequest::from_snapshot().limit(1)).await.unwrap().unwrap();
    assert_eq!((kept.first, kept.entries[0].seq), (Seq(85_000), Seq(85_000)));
    assert_eq!((kept.entries.len(), kept.next), (5_001, Some(Seq(90_001))));
}
