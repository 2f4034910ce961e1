//! Stores that fail where a test says so, and stores that take notes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use harness::store::{
    Batch, InboxSeq, Lease, MemoryStore, Message, NewEntry, ReadRequest, Released, Remove, Sent,
    SessionStore, SessionSummary, StoreError,
};
use harness::testing::{Asked, Call, Contract, Faulty, Recorder};
use harness::{Seq, SessionId, UtcMillis};

const TTL: Duration = Duration::from_secs(60);

fn summary() -> SessionSummary {
    let summary = serde_json::json!({ "agent": "a", "phase": "running", "step": "S" });
    serde_json::from_value(summary).unwrap()
}

async fn open(store: &dyn SessionStore) -> Lease {
    let id = SessionId::new("x").unwrap();
    store.claim(&id, TTL).await.unwrap().lease
}

async fn append(
    store: &dyn SessionStore,
    lease: &Lease,
    after: u64,
    bytes: &[u8],
) -> Result<Seq, StoreError> {
    let summary = summary();
    let batch = Batch {
        after: Seq(after),
        at: UtcMillis(1),
        entries: &[NewEntry { bytes, snapshot: false }],
        summary: Some(&summary),
        flush: true,
        ..Batch::default()
    };
    Ok(store.append(lease, batch).await?.head)
}

fn message(key: &str, body: &str) -> Message {
    Message::new(key, body, body)
}

async fn head(store: &dyn SessionStore) -> u64 {
    let id = SessionId::new("x").unwrap();
    store.read(&id, ReadRequest::summary()).await.unwrap().map_or(0, |page| page.head.0)
}

#[tokio::test]
async fn a_call_that_fails_before_has_done_nothing() {
    let store = Faulty::new(MemoryStore::new());
    let faults = store.faults();
    let lease = open(&store).await;
    faults.before(Call::Append, |n| n == 2);
    append(&store, &lease, 0, b"1").await.unwrap();
    let error = append(&store, &lease, 1, b"2").await.unwrap_err();
    assert!(!error.is_ambiguous(), "{error}");
    assert_eq!(head(&store).await, 1);
    append(&store, &lease, 1, b"2").await.unwrap();
    assert_eq!((head(&store).await, faults.calls(Call::Append)), (2, 3));
}

#[tokio::test]
async fn a_call_that_fails_after_is_done_and_can_be_sent_again() {
    let store = Faulty::new(MemoryStore::new());
    store.faults().after(Call::Append, |n| n % 2 == 1);
    let lease = open(&store).await;
    for after in 0..5 {
        let text = after.to_string();
        let error = append(&store, &lease, after, text.as_bytes()).await.unwrap_err();
        assert!(error.is_ambiguous(), "{error}");
        assert_eq!(head(&store).await, after + 1);
        let again = append(&store, &lease, after, text.as_bytes()).await.unwrap();
        assert_eq!(again, Seq(after + 1));
    }
    assert_eq!(head(&store).await, 5);
}

#[tokio::test]
async fn a_call_that_fails_by_itself_keeps_its_error() {
    let store = Faulty::new(MemoryStore::new());
    store.faults().after(Call::Append, |_| true);
    let lease = open(&store).await;
    let error = append(&store, &lease, 7, b"1").await.unwrap_err();
    assert!(matches!(error, StoreError::Conflict { .. }), "{error}");
}

#[tokio::test]
async fn every_method_can_fail_until_the_faults_are_cleared() {
    let store = Faulty::new(MemoryStore::new());
    let lease = open(&store).await;
    append(&store, &lease, 0, b"1").await.unwrap();
    let faults = store.clone().faults();
    let calls = [
        Call::Claim,
        Call::Renew,
        Call::Release,
        Call::Append,
        Call::Send,
        Call::Read,
        Call::List,
        Call::Remove,
    ];
    for call in calls {
        faults.before(call, |_| true);
    }
    let id = &lease.session;
    assert!(store.claim(id, TTL).await.is_err_and(|e| !e.is_ambiguous()));
    assert!(store.renew(&lease, TTL).await.is_err());
    assert!(store.release(&lease, InboxSeq(0)).await.is_err());
    assert!(append(&store, &lease, 1, b"2").await.is_err());
    assert!(store.send(id, &[message("k", "v")]).await.is_err());
    assert!(store.read(id, ReadRequest::summary()).await.is_err());
    assert!(store.list(&Default::default(), None, 1).await.is_err());
    assert!(store.remove(&lease, Remove::All).await.is_err());
    faults.clear();
    assert_eq!(store.renew(&lease, TTL).await.unwrap(), InboxSeq(0));
    assert_eq!(head(&store).await, 1);
}

#[tokio::test]
async fn what_changes_a_store_is_written_down() {
    let store = Recorder::new(MemoryStore::new());
    let record = store.record();
    let lease = open(&store).await;
    append(&store, &lease, 0, b"one").await.unwrap();
    append(&store, &lease, 5, b"two").await.unwrap_err();
    assert_eq!(
        store.send(&lease.session, &[message("k", "v")]).await.unwrap(),
        Sent::Accepted(InboxSeq(1))
    );
    store.send(&lease.session, &[message("k", "w")]).await.unwrap();
    store.renew(&lease, TTL).await.unwrap();
    store.remove(&lease, Remove::Below(Seq(1))).await.unwrap();
    let released = store.release(&lease, InboxSeq(0)).await.unwrap();
    assert_eq!(released, Released::MoreMessages);
    head(&store).await;
    let session = lease.session.clone();
    let append = |after, bytes: &[u8], done| Asked::Append {
        lease: lease.clone(),
        after: Seq(after),
        entries: vec![(bytes.to_vec(), false)],
        summary: Some(summary()),
        open: Vec::new(),
        close: Vec::new(),
        flush: true,
        done,
    };
    let post =
        |body, done| Asked::Send { to: session.clone(), messages: vec![message("k", body)], done };
    assert_eq!(
        record.all(),
        [
            Asked::Claim { session: session.clone(), done: true },
            append(0, b"one", true),
            append(5, b"two", false),
            post("v", true),
            post("w", false),
            Asked::Renew { lease: lease.clone(), ttl: TTL, done: true },
            Asked::Remove { lease: lease.clone(), what: Remove::Below(Seq(1)), done: true },
            Asked::Release { lease: lease.clone(), read: InboxSeq(0), done: true },
        ]
    );
    assert_eq!(record.entries(&session), [b"one".to_vec(), b"two".to_vec()]);
    record.clear();
    assert_eq!(record.all(), []);
}

#[tokio::test]
async fn what_was_written_cannot_be_denied() {
    let store = Recorder::new(MemoryStore::new());
    let record = store.record();
    let lease = open(&store).await;
    append(&store, &lease, 0, b"a canary sings").await.unwrap();
    store.send(&lease.session, &[message("k", "a parrot talks")]).await.unwrap();
    record.assert_not_written("crow");
    record.assert_none("no removal", |asked| matches!(asked, Asked::Remove { .. }));
    let fails = |check: &dyn Fn()| catch_unwind(AssertUnwindSafe(check)).is_err();
    assert!(fails(&|| record.assert_not_written("canary")));
    assert!(fails(&|| record.assert_not_written("parrot")));
    let any = |asked: &Asked| matches!(asked, Asked::Append { .. });
    assert!(fails(&|| record.assert_none("no batch", any)));
}

#[tokio::test]
async fn wrappers_that_do_nothing_keep_the_contract() {
    let store = Recorder::new(Faulty::new(MemoryStore::new()));
    Contract::new(move || {
        let store = store.clone();
        async move { store }
    })
    .check()
    .await;
}
