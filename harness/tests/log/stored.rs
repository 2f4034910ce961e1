//! The logs in a store, as programs read them: through sessions and agents.

use std::time::Duration;

use harness::prelude::*;
use harness::session::Entry;
use harness::state::Ops;
use harness::store::{
    Batch, InboxSeq, MemoryStore, NewEntry, Remove, SessionStore as _, SessionSummary,
};
use harness::{Seq, SessionId, Sessions};
use serde_json::{Value, json};

use super::Golden;
use super::golden::{Notebook, swapped};

const SESSION: &str = "golden";

/// The state of the other logs. Its reducers are others than those that wrote them, too.
#[derive(State, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Talk {
    #[state(reduce = swapped)]
    lines: Vec<String>,
    #[state(reduce = swapped)]
    n: u8,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Only {
    Step,
}

/// A store with the lines of a log, in batches of one to three.
async fn stored(golden: &Golden, agent: &str) -> MemoryStore {
    let (store, session) = (MemoryStore::new(), SessionId::new(SESSION).unwrap());
    let claimed = store.claim(&session, Duration::from_secs(60)).await.unwrap();
    let lease = claimed.lease;
    let summary = json!({"agent": agent, "phase": "stopped", "step": ""});
    let summary: SessionSummary = serde_json::from_value(summary).unwrap();
    // What stood before a log that was pruned.
    let gone = (1..golden.first).map(|_| (&b"gone"[..], false));
    let lines = golden.entries.iter().map(|line| {
        let change = Entry::decode(line.as_bytes()).unwrap().change;
        (line.as_bytes(), change.name() == "snapshot")
    });
    let entries: Vec<_> =
        gone.chain(lines).map(|(bytes, snapshot)| NewEntry { bytes, snapshot }).collect();
    let (mut after, mut left) = (0, &entries[..]);
    while !left.is_empty() {
        let (entries, behind) = left.split_at((after % 3 + 1).min(left.len()));
        let summary = Some(&summary).filter(|_| after == 0);
        let batch = Batch { after: Seq(after as u64), entries, summary, ..Batch::default() };
        store.append(&lease, batch).await.unwrap();
        (after, left) = (after + entries.len(), behind);
    }
    store.remove(&lease, Remove::Below(Seq(golden.first))).await.unwrap();
    store.release(&lease, InboxSeq(0)).await.unwrap();
    store
}

fn agent<S: State + serde::Serialize>(id: &str, store: MemoryStore) -> Agent<(), S> {
    let harness =
        Harness::<(), S>::builder("reader").start(Only::Step).steps(|define, step| match step {
            Only::Step => define.run(|_state, _cx| async move { Ok(S::update()) }).end(),
        });
    harness.build().unwrap().agent(id, ()).store(store)
}

#[tokio::test]
async fn sessions_report_the_state_behind_each_entry_as_before() {
    for golden in Golden::all() {
        let store = stored(&golden, "m").await;
        let sessions = Sessions::new(store);
        for (at, expected) in golden.states.iter().enumerate() {
            let seq = golden.seq(at);
            let state = sessions.state_at(SESSION, seq).await.unwrap();
            assert_eq!(state.to_string(), *expected, "{} at {seq}", golden.name);
        }
        let last = sessions.state(SESSION).await.unwrap();
        assert_eq!(Some(&last.to_string()), golden.states.last(), "{}", golden.name);
        let behind = sessions.state_at(SESSION, golden.seq(golden.states.len())).await;
        assert!(behind.unwrap_err().is_no_such_entry(), "{}", golden.name);
        if golden.first > 1 {
            let before = sessions.state_at(SESSION, Seq(golden.first - 1)).await;
            assert!(before.unwrap_err().is_pruned(), "{}", golden.name);
        }
    }
}

/// Compares the states that an agent shows with the first of those of a log.
async fn reported_by_agent<S: State + serde::Serialize>(
    golden: &Golden,
    id: &str,
    first: usize,
    tidy: impl Fn(&mut Value),
) {
    let agent = agent::<S>(id, stored(golden, id).await);
    for (at, expected) in golden.states.iter().enumerate().take(first) {
        let seq = golden.seq(at);
        let state = agent.state_at(SESSION, seq).await.unwrap();
        let mut state = serde_json::to_value(&state).unwrap();
        tidy(&mut state);
        assert_eq!(state.to_string(), *expected, "{} at {seq}", golden.name);
    }
}

#[tokio::test]
async fn agents_report_the_states_as_before_and_run_no_reducer() {
    // The one thing that this type writes and the logs' did not.
    let without_note = |state: &mut Value| {
        for row in state["rows"].as_array_mut().unwrap() {
            if row["id"] == json!(2) && row["note"].is_null() {
                row.as_object_mut().unwrap().remove("note");
            }
        }
    };
    for name in ["turns", "pruned"] {
        reported_by_agent::<Notebook>(&Golden::read(name), "clerk", usize::MAX, without_note).await;
    }
    for name in ["fork", "items", "edited"] {
        reported_by_agent::<Talk>(&Golden::read(name), "m", usize::MAX, |_| {}).await;
    }
    // Then another version of the state was taken over.
    reported_by_agent::<Talk>(&Golden::read("migrated"), "m", 4, |_| {}).await;
}

#[test]
fn the_reducers_are_not_those_that_ran() {
    for update in [Talk::update().n(1), Talk::update().lines(vec!["x".to_owned()])] {
        let ran = std::panic::catch_unwind(|| Talk::default().apply(update, &mut Ops::off()));
        assert!(ran.is_err());
    }
}
