use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use harness::store::MemoryStore;
use harness::testing::Contract;

fn contract() -> Contract {
    let store = MemoryStore::new();
    Contract::new(move || {
        let store = store.clone();
        async move { store }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_store_in_memory_keeps_every_clause() {
    let report = contract().run().await;
    report.assert();
    assert_eq!(report.checked.len(), Contract::clauses().count());
}

#[tokio::test]
async fn the_store_in_memory_keeps_every_clause_on_one_thread() {
    contract().check().await;
}

/// The clock of this store cannot be moved; what is tested is that the suite asks for it wherever
/// it would wait.
#[tokio::test]
async fn a_clock_that_is_moved_takes_the_place_of_waiting() {
    let moved = Arc::new(AtomicU64::new(0));
    let count = moved.clone();
    contract()
        .short_lease(Duration::from_millis(20))
        .advance(move |by| {
            count.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(by)
        })
        .check()
        .await;
    assert!(moved.load(Ordering::Relaxed) >= 5);
}
