//! Whatever is done to them, sessions in a database are what sessions in memory are.

use harness::store::MemoryStore;
use proptest::prelude::*;

use crate::operations::{op, perform};
use crate::place::Place;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").map_or(100, |cases| cases.parse().unwrap()),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn sessions_in_a_database_are_what_sessions_in_memory_are(
        ops in prop::collection::vec((op(), 0..3_usize), 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let place = Place::new("model").await;
            let memory = MemoryStore::new();
            let mut stores = Vec::new();
            for _ in 0..3 {
                stores.push(place.open().await);
            }
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for (place, (op, handle)) in ops.iter().enumerate() {
                let expected = perform(&memory, op, &mut theirs).await;
                let found = perform(&stores[*handle], op, &mut ours).await;
                assert_eq!(found, expected, "operation {place}: {op:?}");
            }
            let wrong = "SELECT FROM session s WHERE ready IS DISTINCT FROM ready_3(s)";
            let wrong = place.raw().await.query(wrong, &[]).await.unwrap();
            assert!(wrong.is_empty(), "the functions keep `ready` as its rule is");
        });
    }
}
