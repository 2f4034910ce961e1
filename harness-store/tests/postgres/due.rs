//! Due sessions: found by an index, shared by many claims at once, and waited for.

use std::collections::BTreeSet;
use std::time::Instant;

use harness::Seq;
use harness::id::AgentId;
use harness::store::{
    Batch, DueRequest, InboxSeq, Lease, Phase, SessionStore as _, SessionSummary,
};
use harness_store::PostgresStore;

use crate::place::{Place, append, claim};
use crate::support::{LONG, id, message, summary};

fn agents() -> [AgentId; 1] {
    [AgentId::new("a")]
}

/// A session that rests and has nothing to do.
async fn resting(store: &PostgresStore, name: &str) -> Lease {
    let lease = claim(store, &id(name)).await;
    append(store, &lease, 0, b"one").await.unwrap();
    change(store, &lease, &summary(Phase::Ended)).await;
    lease
}

async fn change(store: &PostgresStore, lease: &Lease, summary: &SessionSummary) {
    let batch = Batch { after: Seq(1), summary: Some(summary), ..Batch::default() };
    store.append(lease, batch).await.unwrap();
}

/// Waits for something that comes, until it has ended the wait.
async fn woken(store: &PostgresStore) {
    let (agents, begun) = (agents(), Instant::now());
    store.wait_due(&agents, LONG).await;
    assert!(begun.elapsed() < LONG / 2, "nothing has ended the wait");
}

/// Waits once, so that the store listens from then on.
async fn listening(place: &Place) -> PostgresStore {
    let store = place.open().await;
    store.wait_due(&agents(), LONG).await;
    store
}

#[tokio::test]
async fn a_message_and_a_release_end_the_wait_of_another_store() {
    let place = Place::new("due_wait").await;
    let (store, other) = (place.open().await, listening(&place).await);
    let lease = resting(&store, "x").await;
    store.release(&lease, InboxSeq(0)).await.unwrap();
    let send = async { store.send(&id("x"), &[message("k", "v")]).await.unwrap() };
    tokio::join!(woken(&other), send);
    // Who holds it reads its messages; what it has not read is due once it is released.
    let lease = claim(&store, &id("x")).await;
    let release = async { store.release(&lease, InboxSeq(0)).await.unwrap() };
    tokio::join!(woken(&other), release);
    let due = other.claim_due(&DueRequest::new(agents()), LONG).await.unwrap();
    assert_eq!(due.claimed.len(), 1);
}

#[tokio::test]
async fn what_is_about_other_agents_ends_no_wait() {
    let place = Place::new("due_other").await;
    let (store, other) = (place.open().await, listening(&place).await);
    for (name, agent) in [("x", "b"), ("y", "a")] {
        let lease = resting(&store, name).await;
        let mut summary = summary(Phase::Ended);
        summary.agent = AgentId::new(agent);
        let batch = Batch {
            after: Seq(1),
            at: harness::UtcMillis(9),
            summary: Some(&summary),
            ..Batch::default()
        };
        store.append(&lease, batch).await.unwrap();
        store.release(&lease, InboxSeq(0)).await.unwrap();
    }
    let other_agents = id("x");
    let (agents, messages, begun) = (agents(), [message("k", "v")], Instant::now());
    let request = DueRequest::new(agents.clone());
    let mut waits = Box::pin(other.wait_due(&agents, LONG));
    tokio::select! {
        biased;
        () = &mut waits => panic!("nothing was sent"),
        sent = store.send(&other_agents, &messages) => drop(sent.unwrap()),
    }
    // A notice to the same connection later than the first.
    let is_quiet = tokio::select! {
        biased;
        () = &mut waits => false,
        listed = other.claim_due(&request, LONG) => {
            listed.unwrap().claimed.is_empty()
        }
    };
    assert!(is_quiet, "a session of another agent has ended the wait");
    let send = async { store.send(&id("y"), &[message("k", "v")]).await.unwrap() };
    tokio::join!(waits, send);
    assert!(begun.elapsed() < LONG / 2, "nothing has ended the wait");
}

#[tokio::test]
async fn the_end_of_the_connection_that_listens_ends_a_wait_and_the_next_listens_again() {
    let place = Place::new("due_cut").await;
    let (store, other) = (place.open().await, listening(&place).await);
    let lease = resting(&store, "x").await;
    store.release(&lease, InboxSeq(0)).await.unwrap();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE query = 'LISTEN harness_' || encode(substr(sha256(convert_to($1::text, 'UTF8')),
                   1, 16), 'hex')";
    let client = place.raw().await;
    let cut = async { assert_eq!(client.execute(end, &[&place.schema]).await.unwrap(), 1) };
    tokio::join!(woken(&other), cut);
    // What may have come while it did not listen is for the caller to ask for.
    woken(&other).await;
    let send = async { store.send(&id("x"), &[message("k", "v")]).await.unwrap() };
    tokio::join!(woken(&other), send);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_stores_that_claim_at_once_each_gets_sessions_of_its_own() {
    let place = Place::new("due_share").await;
    let store = place.open().await;
    insert(&place, 600, "1", "NULL").await;
    drop(store);
    let claim = |_| {
        let place = place.clone();
        tokio::spawn(async move {
            let (store, mut got) = (place.open().await, Vec::new());
            loop {
                let request = DueRequest::new(agents()).limit(7);
                let due = store.claim_due(&request, LONG).await.unwrap();
                assert!(due.failed.is_empty());
                if due.claimed.is_empty() {
                    return got;
                }
                got.extend(due.claimed.into_iter().map(|it| (it.lease.session, it.lease.fence)));
            }
        })
    };
    let mut all = Vec::new();
    for task in (0..4).map(claim).collect::<Vec<_>>() {
        all.extend(task.await.unwrap());
    }
    let sessions: BTreeSet<_> = all.iter().map(|(session, _)| session.clone()).collect();
    let fences: BTreeSet<_> = all.iter().map(|(_, fence)| *fence).collect();
    assert_eq!((all.len(), sessions.len(), fences.len()), (600, 600, 600));
}

/// Sessions `s1` and so on, without entries.
async fn insert(place: &Place, count: u32, phase: &str, due: &str) {
    let summary = serde_json::to_string(&summary(Phase::Running)).unwrap();
    place
        .run(&format!(
            "INSERT INTO session (id, written, agent, phase, summary, due)
             SELECT convert_to('s' || n, 'UTF8'), true, 'a', {phase}, '{summary}', {due}
             FROM generate_series(1, {count}) n;
             INSERT INTO batch SELECT key, 1, 1, 3, t, NULL, e,
                 substr(sha256(int8send(1) || int8send(1) || t || int8send(octet_length(id)) || id
                     || e), 1, 16)
             FROM session, (SELECT decode(repeat('07', 16), 'hex') AS t,
                 '\\x06000000'::bytea || 'one' AS e) one;
             UPDATE session s SET head = 1, ready = ready_3(s)"
        ))
        .await;
}

/// Held sessions, and those whose time comes later, are not looked at. The server has no statistics.
#[tokio::test]
async fn a_due_session_among_100_000_is_found_by_an_index() {
    const NAME: &str = "harness_due_many";
    let place = Place::new("due_many").await.named(NAME);
    let store = place.open().await;
    insert(&place, 100_000, "2", "9e15").await;
    place
        .run("UPDATE session SET phase = 1, token = '\\x00', until = 9e15 WHERE key % 2 = 0")
        .await;
    place.run("UPDATE session SET due = 5 WHERE id = 's50001'").await;
    place
        .run("UPDATE session s SET ready = ready_3(s) WHERE ready IS DISTINCT FROM ready_3(s)")
        .await;
    drop(store);
    let filled = place.rows_read(NAME).await;
    let store = place.open().await;
    for expected in [1, 0] {
        let due = store.claim_due(&DueRequest::new(agents()).limit(9), LONG).await.unwrap();
        assert_eq!(due.claimed.len(), expected);
    }
    drop(store);
    let read = place.rows_read(NAME).await - filled;
    assert!(read < 100, "{read} rows to find one session");
}

#[tokio::test]
async fn a_damaged_session_that_is_due_is_reported_and_hides_no_other() {
    let place = Place::new("due_damaged").await;
    let store = place.open().await;
    insert(&place, 3, "1", "NULL").await;
    place
        .run("UPDATE batch SET sum = '\\x00' WHERE session = (SELECT min(key) FROM session)")
        .await;
    let due = store.claim_due(&DueRequest::new(agents()).limit(2), LONG).await.unwrap();
    let claimed: Vec<_> = due.claimed.iter().map(|it| it.lease.session.as_str()).collect();
    assert_eq!(claimed, ["s2", "s3"]);
    let failed: Vec<_> = due.failed.iter().map(|(session, _)| session.as_str()).collect();
    assert_eq!(failed, ["s1"]);
    let request = DueRequest::new(agents()).except([id("s1")]);
    assert!(store.claim_due(&request, LONG).await.unwrap().failed.is_empty());
}
