//! Waiting for due sessions in the stores of one machine, which notice what their own process does.

use std::time::{Duration, Instant};

use harness::id::AgentId;
use harness::prelude::*;
use harness::store::{Batch, DueRequest, InboxSeq, NewEntry, Phase, SessionStore, SessionSummary};
use harness::testing::{Call, Faulty};
use harness::worker::Worker;
use harness::{Seq, UtcMillis};

use crate::support::{LONG, append, claim, id, message, open, summary};

fn agents() -> [AgentId; 1] {
    [AgentId::new("a")]
}

/// Waits for something that comes, until it has ended the wait.
async fn woken(store: &impl SessionStore) {
    let (agents, begun) = (agents(), Instant::now());
    store.wait_due(&agents, LONG).await;
    assert!(begun.elapsed() < LONG / 2, "nothing has ended the wait");
}

async fn wakes(store: impl SessionStore) {
    let session = id("x");
    let lease = store.claim(&session, LONG).await.unwrap().lease;
    let (summary, entries) = (summary(Phase::Ended), [NewEntry { bytes: b"1", snapshot: false }]);
    let batch = Batch { entries: &entries, summary: Some(&summary), ..Batch::default() };
    store.append(&lease, batch).await.unwrap();

    // Its holder reads what comes, and a session with nothing to do is not due.
    let agents = agents();
    let mut wait = Box::pin(store.wait_due(&agents, LONG));
    let quiet = async {
        store.send(&session, &[message("held", "v")]).await.unwrap();
        store.release(&lease, InboxSeq(1)).await.unwrap();
    };
    tokio::select! {
        biased;
        () = &mut wait => panic!("the session is not due"),
        () = quiet => {}
    }
    // The message that nothing holds, and a release that leaves one.
    let send = async { store.send(&session, &[message("free", "v")]).await.unwrap() };
    tokio::join!(woken(&store), wait, send);
    let lease = store.claim(&session, LONG).await.unwrap().lease;
    let release = async { store.release(&lease, InboxSeq(1)).await.unwrap() };
    tokio::join!(woken(&store), release);
}

#[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
struct Doc {
    text: String,
}

#[derive(StepId, Clone, Debug, PartialEq, Eq)]
enum Step {
    Write,
}

async fn write(_: View<Doc>, _: Cx<()>) -> StepResult<Doc> {
    Ok(Doc::update())
}

/// In real time: while threads of a store are at work, paused time would pass at once.
async fn polls(store: impl SessionStore) {
    let harness = Harness::<(), Doc>::builder("doc")
        .start(Step::Write)
        .steps(|define, step| match step {
            Step::Write => define.run(write).end(),
        })
        .build()
        .unwrap();
    let store = Faulty::new(store);
    let faults = store.faults();
    let agent = harness.agent("a", ()).store(store);
    agent.run(Doc::update(), ()).session("settled").await.unwrap();
    let worker = Worker::new().serve(&agent, |_| async { Ok(()) }).start().unwrap();
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    let asked = faults.calls(Call::ClaimDue);
    assert!((1..=3).contains(&asked), "{asked} calls in 2.5 seconds");
    worker.drain().await;
}

#[tokio::test]
async fn a_message_and_a_release_end_the_waits_of_the_process() {
    let dir = tempfile::tempdir().unwrap();
    wakes(crate::support::open(dir.path()).await).await;
    #[cfg(feature = "sqlite")]
    wakes(harness_store::SqliteStore::open(dir.path().join("s.db")).await.unwrap()).await;
}

#[tokio::test]
async fn an_idle_worker_asks_at_most_once_a_second() {
    let dir = tempfile::tempdir().unwrap();
    polls(crate::support::open(dir.path()).await).await;
    #[cfg(feature = "sqlite")]
    polls(harness_store::SqliteStore::open(dir.path().join("s.db")).await.unwrap()).await;
}

/// The first look is at all logs; later ones are at what has changed.
#[tokio::test]
async fn what_another_store_changes_between_two_looks_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let (here, there) = (open(dir.path()).await, open(dir.path()).await);
    let look = async || {
        let due = here.claim_due(&DueRequest::new(agents()), LONG).await.unwrap();
        assert!(due.failed.is_empty(), "{:?}", due.failed);
        due.claimed
    };
    assert!(look().await.is_empty());

    // A message makes a session due that is new since the first look.
    let (session, waits) = (id("x"), id("y"));
    for session in [&session, &waits] {
        let lease = claim(&there, session).await;
        append(&there, &lease, 0, b"1", Some(Phase::Ended)).await.unwrap();
        there.release(&lease, InboxSeq(0)).await.unwrap();
    }
    assert!(look().await.is_empty());
    there.send(&session, &[message("k", "v")]).await.unwrap();
    let mut found = look().await;
    assert_eq!(found.len(), 1);
    here.release(&found.remove(0).lease, InboxSeq(1)).await.unwrap();
    assert!(look().await.is_empty());

    // Another message, to a session whose log was found as it is before.
    there.send(&session, &[message("again", "v")]).await.unwrap();
    let mut found = look().await;
    assert_eq!(found.len(), 1);
    here.release(&found.remove(0).lease, InboxSeq(2)).await.unwrap();

    // What a holder writes counts nothing, and its end makes the session due.
    let lease = claim(&there, &session).await;
    assert!(look().await.is_empty());
    append(&there, &lease, 1, b"2", Some(Phase::Running)).await.unwrap();
    assert!(look().await.is_empty());
    // One that was claimed and released since the last look.
    let timer = claim(&there, &waits).await;
    let past = SessionSummary { due: Some(UtcMillis(1)), ..summary(Phase::Waiting) };
    let batch = Batch { after: Seq(1), summary: Some(&past), ..Batch::default() };
    there.append(&timer, batch).await.unwrap();
    there.release(&timer, InboxSeq(0)).await.unwrap();
    assert_eq!(look().await.remove(0).lease.session, waits);

    drop(there);
    assert_eq!(look().await.remove(0).lease.session, session);
    assert!(look().await.is_empty());
}
