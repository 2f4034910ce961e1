//! Every order in which items finish gives the same state.

use harness::store::MemoryStore;
use proptest::prelude::*;

use super::bench::*;
use super::rig::{folded, runtime};

fn finish(order: &[usize], stored: bool) -> (Work, Option<serde_json::Value>) {
    runtime().block_on(async {
        let probe = Probe::default();
        let seen = probe.clone();
        let harness = Loop { concurrency: Some(99), ..Loop::default() }.build(move |item, _| {
            let probe = seen.clone();
            async move {
                probe.pass(&item).await;
                probe.open("finished");
                Ok(format!("<{item}>"))
            }
        });
        let store = MemoryStore::new();
        let agent = harness.agent("a", ());
        let agent = if stored { agent.store(store.clone()) } else { agent };
        let names: Vec<String> = (0..order.len()).map(|n| n.to_string()).collect();
        let run = agent.run(Work::update().items(names), ()).session("s").start();
        for item in order {
            probe.open(&item.to_string());
            probe.pass("finished").await;
        }
        let state = ended(run.await.unwrap()).state;
        let folded = if stored { Some(folded(&store, "s").await) } else { None };
        (state, folded)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_order_of_finishing_gives_the_same_state(
        order in (0..9_usize).prop_flat_map(|n| Just((0..n).collect::<Vec<_>>()).prop_shuffle()),
        stored in any::<bool>(),
    ) {
        let (state, folded) = finish(&order, stored);
        let mut expected: Vec<String> = (0..order.len()).map(|n| format!("<{n}>")).collect();
        expected.push("After".to_owned());
        prop_assert_eq!(&state.out, &expected);
        if let Some(folded) = folded {
            prop_assert_eq!(folded, serde_json::to_value(&state).unwrap());
        }
    }
}
