//! Whatever is done to them, sessions in a database are what sessions in memory are.

use harness::store::MemoryStore;
use harness_store::SqliteStore;
use proptest::prelude::*;

use super::open;
use crate::model::{op, perform};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").map_or(150, |cases| cases.parse().unwrap()),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn sessions_in_a_database_are_what_sessions_in_memory_are(
        ops in prop::collection::vec((op(), 0..3_usize), 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let memory = MemoryStore::new();
            let mut stores: Vec<SqliteStore> = Vec::new();
            for _ in 0..3 {
                stores.push(open(dir.path()).await);
            }
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for (place, (op, handle)) in ops.iter().enumerate() {
                let expected = perform(&memory, op, &mut theirs).await;
                let found = perform(&stores[*handle], op, &mut ours).await;
                assert_eq!(found, expected, "operation {place}: {op:?}");
            }
        });
    }
}
