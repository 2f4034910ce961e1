//! Large sessions, and lists whose pages cost the same however many sessions there are.

use harness::store::{Batch, Filter, NewEntry, Phase, SessionStore as _, StoreError};

use crate::place::{Place, claim};
use crate::shared_size;
use crate::support::{id, summary};

fn agent_id(text: &str) -> harness::id::AgentId {
    serde_json::from_value(text.into()).unwrap()
}

#[tokio::test]
async fn a_state_of_50_mb_is_kept_and_read_back() {
    shared_size::large_state(Place::new("size_state").await.open().await).await;
}

#[tokio::test]
async fn a_log_of_100_000_entries_is_read_and_pruned() {
    shared_size::long_log(Place::new("size_log").await.open().await).await;
}

#[tokio::test]
async fn ten_thousand_open_interrupts_are_listed_by_page_and_answered_at_once() {
    shared_size::many_interrupts(Place::new("size_open").await.open().await).await;
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
    const NAME: &str = "harness_size_list";
    let place = Place::new("size_list").await.named(NAME);
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
    drop(store);
    let filled = place.rows_read(NAME).await;
    let store = place.open().await;
    let filters = [
        Filter::sessions(),
        Filter::sessions().agent(agent_id("a1")),
        Filter::sessions().phase(Phase::Interrupted),
        Filter::sessions().agent(agent_id("a1")).phase(Phase::Interrupted),
        Filter::interrupts(),
        Filter::interrupts().agent(agent_id("a1")),
        Filter::interrupts().agent(agent_id("a1")).phase(Phase::Interrupted),
    ];
    for filter in &filters {
        let listing = store.list(filter, Some(b"s090000"), 100).await.unwrap();
        assert_eq!(listing.rows.len(), 100, "{filter:?}");
        assert!(listing.next.is_some());
        // The key of a session comes before those of its interrupts.
        let first = listing.rows[0].session.as_str();
        assert!(first > "s090000" || filter.interrupts && first == "s090000", "{first}");
    }
    drop(store);
    // The rows of each page and one more, of interrupts also their sessions, and what it takes to open a
    // store.
    let read = place.rows_read(NAME).await - filled;
    assert!(read < 300 * filters.len() as i64, "{read} rows for {} pages", filters.len());
}
