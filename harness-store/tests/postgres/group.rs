//! Appends that share a transaction: one that is refused or cannot be done fails alone, and what is
//! acknowledged is durable.

use std::sync::Arc;
use std::time::Duration;

use harness::Seq;
use harness::store::{Batch, InboxSeq, Lease, NewEntry, SessionStore as _, StoreError};
use harness_store::PostgresStore;
use tokio_postgres::Client;

use crate::place::{Place, append, claim, page};
use crate::server::Server;
use crate::support::{LONG, id};

/// Sessions `s0` and so on, with an entry each.
async fn sessions(store: &PostgresStore, count: usize) -> Vec<Lease> {
    let mut leases = Vec::new();
    for at in 0..count {
        let lease = claim(store, &id(&format!("s{at}"))).await;
        append(store, &lease, 0, b"one").await.unwrap();
        leases.push(lease);
    }
    leases
}

/// Appends an entry and changes no more of the session.
async fn append_entries(store: &PostgresStore, lease: &Lease, after: u64, bytes: &[u8]) -> Answer {
    let entries = [NewEntry { bytes, snapshot: false }];
    let batch = Batch { after: Seq(after), entries: &entries, flush: true, ..Batch::default() };
    store.append(lease, batch).await
}

type Answer = Result<harness::store::Appended, StoreError>;

/// Appends an entry to each, as one group: until all have been given to the store, another program
/// keeps what its caller appends alone, and its only lane.
async fn at_once(place: &Place, store: &PostgresStore, leases: &[Lease]) -> Vec<Answer> {
    at_once_with(place, store, leases, async {}).await
}

/// Does `more` with them.
async fn at_once_with<T>(
    place: &Place,
    store: &PostgresStore,
    leases: &[Lease],
    more: impl Future<Output = T>,
) -> Vec<Answer> {
    let mut gates = Vec::new();
    for name in ["gate0", "gate1"] {
        let gate = claim(store, &id(name)).await;
        append(store, &gate, 0, b"one").await.unwrap();
        gates.push(gate);
    }
    let other = place.raw().await;
    other
        .batch_execute("BEGIN; SELECT FROM session WHERE id IN ('gate0', 'gate1') FOR UPDATE")
        .await
        .unwrap();
    // The store has one statement for batches with entries only, and one for all others.
    let spawn = |(lease, at): (&Lease, usize)| {
        let (store, lease) = (store.clone(), lease.clone());
        tokio::spawn(async move {
            match at % 2 {
                0 => append(&store, &lease, 1, b"two").await,
                _ => append_entries(&store, &lease, 1, b"two").await,
            }
        })
    };
    let first: Vec<_> = gates.iter().map(|gate| spawn((gate, 1))).collect();
    wait_for_lock(place, 2).await;
    let tasks: Vec<_> = leases.iter().zip(0..).map(spawn).collect();
    let end = async {
        // On one thread, each has been polled, and waits.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        other.batch_execute("COMMIT").await.unwrap();
    };
    tokio::join!(end, more);
    for gate in first {
        gate.await.unwrap().unwrap();
    }
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers
}

/// Waits until so many appends wait for a lock.
async fn wait_for_lock(place: &Place, count: usize) {
    let watcher = place.raw().await;
    let text = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'
                AND query LIKE '%takes_3%' AND application_name = $1";
    while watcher.query(text, &[&place.schema]).await.unwrap().len() != count {
        tokio::task::yield_now().await;
    }
}

/// Records for each commit of entries its transaction and how it is committed.
async fn record_commits(place: &Place) -> Client {
    place
        .run(
            "CREATE TABLE committed (session bigint, transaction bigint, durability text);
             CREATE FUNCTION record() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 INSERT INTO committed VALUES (NEW.session, txid_current(),
                     current_setting('synchronous_commit'));
                 RETURN NULL;
             END $$;
             CREATE CONSTRAINT TRIGGER record AFTER INSERT ON batch
                 DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION record()",
        )
        .await;
    place.raw().await
}

async fn open(place: &Place, options: &str) -> PostgresStore {
    let url = format!("{}?application_name={}{options}", place.url, place.schema);
    place.options().max_connections(3).connect(&url).await.unwrap()
}

#[tokio::test]
async fn appends_at_once_share_a_transaction() {
    let place = Place::new("group_shares").await;
    let store = open(&place, "").await;
    let leases = sessions(&store, 50).await;
    let client = record_commits(&place).await;
    for answer in at_once(&place, &store, &leases).await {
        assert_eq!(answer.unwrap().head, Seq(2));
    }
    let text = "SELECT count(DISTINCT transaction), count(*) FROM committed
                WHERE session <> ALL (SELECT key FROM session WHERE id IN ('gate0', 'gate1'))";
    let row = client.query_one(text, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (1, 50));
}

#[tokio::test]
async fn an_append_that_its_caller_does_not_continue_keeps_no_other_waiting() {
    let place = Place::new("group_left").await;
    let store = open(&place, "").await;
    let leases = sessions(&store, 3).await;
    let mut left = std::pin::pin!(append(&store, &leases[0], 1, b"two"));
    tokio::select! {
        biased;
        answer = &mut left => panic!("the server was not waited for: {answer:?}"),
        () = std::future::ready(()) => {}
    }
    let (one, two) =
        tokio::join!(append(&store, &leases[1], 1, b"two"), append(&store, &leases[2], 1, b"two"));
    assert_eq!((one.unwrap().head, two.unwrap().head), (Seq(2), Seq(2)));
    assert_eq!(left.await.unwrap().head, Seq(2));
}

#[tokio::test]
async fn a_batch_that_is_refused_in_a_group_fails_alone() {
    let place = Place::new("group_refused").await;
    let store = open(&place, "").await;
    let leases = sessions(&store, 6).await;
    let direct = place.open().await;
    // Another holder; another head; no session.
    place.run("UPDATE session SET token = '\\x00' WHERE id = 's1'").await;
    append(&direct, &leases[3], 1, b"three").await.unwrap();
    direct.remove(&leases[5], harness::store::Remove::All).await.unwrap();
    let answers = at_once(&place, &store, &leases).await;
    for (at, answer) in answers.iter().enumerate() {
        match at {
            1 => assert!(matches!(answer, Err(StoreError::Fenced { .. })), "{answer:?}"),
            3 => assert!(matches!(answer, Err(StoreError::Conflict { .. })), "{answer:?}"),
            5 => assert!(matches!(answer, Err(StoreError::Gone { .. })), "{answer:?}"),
            _ => assert_eq!(answer.as_ref().unwrap().head, Seq(2)),
        }
    }
}

#[tokio::test]
async fn a_batch_that_the_server_cannot_do_in_a_group_fails_alone() {
    let place = Place::new("group_fails").await;
    let store = open(&place, "").await;
    let leases = sessions(&store, 6).await;
    let key: i64 = place
        .raw()
        .await
        .query_one("SELECT key FROM session WHERE id = 's2'", &[])
        .await
        .unwrap()
        .get(0);
    let check = "ALTER TABLE batch ADD CHECK (first = 1 OR session <> ";
    place.run(&format!("{check}{key}) NOT VALID")).await;
    let answers = at_once(&place, &store, &leases).await;
    for (at, answer) in answers.iter().enumerate() {
        match at {
            2 => assert!(
                matches!(answer, Err(StoreError::Unavailable { ambiguous: false, .. })),
                "{answer:?}"
            ),
            _ => assert_eq!(answer.as_ref().unwrap().head, Seq(2)),
        }
    }
    assert_eq!(page(&store, &id("s2")).await.head, Seq(1));
}

#[tokio::test]
async fn a_session_that_another_program_holds_makes_no_other_wait() {
    let place = Place::new("group_lock").await;
    let store = open(&place, "").await;
    let leases = sessions(&store, 6).await;
    let other = place.raw().await;
    other.batch_execute("BEGIN; SELECT FROM session WHERE id = 's4' FOR UPDATE").await.unwrap();
    let answers = tokio::spawn({
        let (place, store) = (place.clone(), store.clone());
        async move { at_once(&place, &store, &leases).await }
    });
    // All others have ended when that one still waits.
    let watcher = place.open().await;
    for at in [0, 1, 2, 3, 5] {
        while page(&watcher, &id(&format!("s{at}"))).await.head != Seq(2) {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(page(&watcher, &id("s4")).await.head, Seq(1));
    other.batch_execute("COMMIT").await.unwrap();
    for answer in answers.await.unwrap() {
        assert_eq!(answer.unwrap().head, Seq(2));
    }
}

/// Even where the server, or the URL, would not wait for the disk.
#[tokio::test]
async fn a_flushed_batch_commits_with_synchronous_commit_on_alone_and_in_a_group() {
    let place = Place::new("group_durable").await;
    let store = open(&place, "&options=-csynchronous_commit%3Doff").await;
    let mut leases = sessions(&store, 5).await;
    let client = record_commits(&place).await;
    append(&store, &leases[0], 1, b"two").await.unwrap();
    let relaxed = leases.remove(0);
    let without_flush = async |after| {
        let entries = [NewEntry { bytes: b"more", snapshot: false }];
        let batch = Batch { after: Seq(after), entries: &entries, ..Batch::default() };
        store.append(&relaxed, batch).await.unwrap()
    };
    without_flush(2).await;
    let durability = async || {
        let text = "SELECT DISTINCT durability FROM committed ORDER BY 1";
        let rows = client.query(text, &[]).await.unwrap();
        rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>()
    };
    assert_eq!(durability().await, ["off", "on"].map(String::from));
    client.batch_execute("DELETE FROM committed").await.unwrap();
    // In one transaction with others that are flushed, it is, too.
    let answers = at_once_with(&place, &store, &leases, without_flush(3)).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(durability().await, ["on"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_to_wait_for_the_disk_does_not_change_open_connections() {
    let server = tokio::task::block_in_place(Server::start);
    let place = Place { url: server.url(), schema: "test_reload".into() };
    let store = place.options().max_connections(1).connect(&place.url).await.unwrap();
    let leases = sessions(&store, 1).await;
    let client = record_commits(&place).await;
    client.batch_execute("ALTER SYSTEM SET synchronous_commit TO off").await.unwrap();
    client.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    // One that has not set it follows the server.
    let text = "SELECT current_setting('synchronous_commit')";
    while client.query_one(text, &[]).await.unwrap().get::<_, &str>(0) != "off" {
        tokio::task::yield_now().await;
    }
    for after in 1..20 {
        append(&store, &leases[0], after, b"more").await.unwrap();
    }
    let text = "SELECT DISTINCT durability FROM committed";
    let row = client.query_one(text, &[]).await.unwrap();
    assert_eq!(row.get::<_, &str>(0), "on");
}

/// The last append of a runtime that ends may or may not have its effect; the store stays of use.
#[test]
fn the_end_of_a_runtime_keeps_no_other_waiting() {
    let new = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = new();
    let (store, lease) = first.block_on(async {
        let place = Place::new("group_runtime").await;
        let store = place.options().max_connections(1).connect(&place.url).await.unwrap();
        let lease = claim(&store, &id("x")).await;
        append(&store, &lease, 0, b"one").await.unwrap();
        // Its transaction is under way, and what waits for it has not begun.
        for nth in 0..5 {
            let (store, lease) = (store.clone(), lease.clone());
            tokio::spawn(async move { append(&store, &lease, nth, b"two").await });
        }
        tokio::task::yield_now().await;
        (store, Arc::new(lease))
    });
    drop(first);
    new().block_on(async {
        let head = page(&store, &id("x")).await.head.0;
        let appended = tokio::time::timeout(LONG, append(&store, &lease, head, b"later"));
        assert_eq!(appended.await.unwrap().unwrap().head, Seq(head + 1));
    });
}

#[tokio::test]
async fn appends_that_wait_for_a_server_that_hangs_fail_without_an_effect() {
    let place = Place::new("group_waits").await;
    // The one that waits has waited for too long once the one before it has failed.
    let store = place
        .options()
        .max_connections(1)
        .call_timeout(Duration::from_millis(600))
        .acquire_timeout(Duration::from_millis(100))
        .connect(&format!("{}?application_name={}", place.url, place.schema))
        .await
        .unwrap();
    let leases = sessions(&store, 2).await;
    let other = place.raw().await;
    other.batch_execute("BEGIN; SELECT FROM session FOR UPDATE").await.unwrap();
    let begun = std::time::Instant::now();
    let (first, second) =
        tokio::join!(append(&store, &leases[0], 1, b"two"), append(&store, &leases[1], 1, b"two"));
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert!(matches!(first, Err(StoreError::Unavailable { .. })), "{first:?}");
    let is_waiting = matches!(second, Err(StoreError::Unavailable { ambiguous: false, .. }));
    assert!(is_waiting, "{second:?}");
    other.batch_execute("COMMIT").await.unwrap();
    let request = harness::store::ReadRequest::from(Seq(1)).with_messages_after(InboxSeq(0));
    assert_eq!(store.read(&id("s1"), request).await.unwrap().unwrap().head, Seq(1));
}
