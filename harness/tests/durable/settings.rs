//! How an agent uses its store, whenever it says so.

use std::time::Duration;

use harness::prelude::*;
use harness::store::MemoryStore;
use harness::{Sessions, UtcMillis};

#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Doc {
    /// Whether the lease is one of 30 seconds, and not of seven.
    long: Vec<bool>,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Only {
    Step,
}

type DocAgent = Agent<(), Doc>;

/// An agent that notes for how long its session is held, and that of a child.
fn agent(id: &str, store: &MemoryStore, child: Option<DocAgent>) -> DocAgent {
    let store = store.clone();
    let body = move |_: View<Doc>, cx: Cx<()>| {
        let (sessions, child) = (Sessions::new(store.clone()), child.clone());
        async move {
            let held = sessions.status(cx.session_id()).await.unwrap().holder.unwrap();
            let mut long = vec![held.until > UtcMillis::now().after(Duration::from_secs(10))];
            if let Some(child) = child {
                long.extend(&cx.call(&child, Doc::update(), ()).await?.state.long);
            }
            Ok(Doc::update().long(long))
        }
    };
    let harness = Harness::<(), Doc>::builder("settings")
        .start(Only::Step)
        .steps(|define, Only::Step| define.run(body.clone()).end())
        .build()
        .unwrap();
    harness.agent(id, ())
}

#[tokio::test]
async fn a_lease_lasts_as_the_agent_says_before_or_after_it_has_a_store() {
    let same: fn(DocAgent) -> DocAgent = |agent| agent;
    let seven: fn(DocAgent) -> DocAgent = |agent| agent.lease(Duration::from_secs(7));
    // A child without a store is stored as its parent is, unless it says otherwise.
    for (before, after, of_child, expected) in [
        (same, same, same, [true, true]),
        (same, seven, same, [false, false]),
        (seven, same, same, [false, false]),
        (same, same, seven, [true, false]),
    ] {
        let store = MemoryStore::new();
        let child = of_child(agent("child", &store, None));
        let parent = after(before(agent("parent", &store, Some(child))).store(store));
        let ended = parent.run(Doc::update(), ()).await.unwrap().ended().unwrap();
        assert_eq!(ended.state.long, expected);
    }
}
