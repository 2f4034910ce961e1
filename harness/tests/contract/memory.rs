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
