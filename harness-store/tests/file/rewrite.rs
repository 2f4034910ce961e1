//! Logs that are rewritten while others write to them.

use harness::Seq;
use harness::store::{
    Batch, Filter, InboxSeq, Lease, NewEntry, Phase, ReadRequest, Remove, Sent, SessionStore as _,
    SessionSummary, StoreError,
};
use harness_store::FileStore;

use crate::support::{append, claim, files, id, message, open, page, summary};

async fn snapshot(store: &FileStore, lease: &Lease, after: u64, summary: &SessionSummary) {
    let entries = [NewEntry { bytes: b"snapshot", snapshot: true }];
    let after = Seq(after);
    let batch = Batch { after, entries: &entries, summary: Some(summary), ..Batch::default() };
    store.append(lease, batch).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_message_is_lost_while_the_log_is_rewritten() {
    const MESSAGES: u64 = 400;
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let lease = claim(&store, &id("x")).await;
    append(&store, &lease, 0, b"1", Some(Phase::Running)).await.unwrap();
    let mut posters = Vec::new();
    for poster in 0..2 {
        let store = open(dir.path()).await;
        posters.push(tokio::spawn(async move {
            for number in 0..MESSAGES / 2 {
                let messages = [message(&format!("{poster}-{number}"), "text")];
                let posted = store.send(&id("x"), &messages).await.unwrap();
                assert!(matches!(posted, Sent::Accepted(_)), "{posted:?}");
            }
        }));
    }
    let (mut head, mut rewritten) = (1, 0);
    while posters.iter().any(|poster| !poster.is_finished()) || rewritten == 0 {
        snapshot(&store, &lease, head, &summary(Phase::Running)).await;
        head += 1;
        match store.remove(&lease, Remove::Below(Seq(head))).await {
            Ok(()) => rewritten += 1,
            // Nothing was changed; the posters were faster all the while.
            Err(StoreError::Unavailable { ambiguous: false, .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    for poster in posters {
        poster.await.unwrap();
    }
    for store in [store, open(dir.path()).await] {
        let page = store
            .read(
                &id("x"),
                ReadRequest::from_snapshot().with_messages_after(InboxSeq(0)).limit(u64::MAX),
            )
            .await
            .unwrap()
            .unwrap();
        assert_eq!((page.head.0, page.messages.len() as u64), (head, MESSAGES));
        assert_eq!(page.entries.last().unwrap().bytes, b"snapshot");
        assert!(page.first.0 > 1);
    }
    assert_eq!(files(dir.path(), "log").len(), 1);
    assert_eq!(files(dir.path(), "next").len(), 0);
}

#[tokio::test]
async fn a_claim_that_comes_first_keeps_a_log_from_being_rewritten() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (open(dir.path()).await, open(dir.path()).await);
    let lease = claim(&one, &id("x")).await;
    append(&one, &lease, 0, b"1", Some(Phase::Ended)).await.unwrap();
    snapshot(&one, &lease, 1, &summary(Phase::Ended)).await;
    // The other handle gives it back, so that this one does not know.
    other.release(&lease, InboxSeq(0)).await.unwrap();
    let stolen = claim(&other, &id("x")).await;
    let refused = one.remove(&lease, Remove::Below(Seq(9))).await;
    assert!(matches!(refused, Err(StoreError::Fenced { .. })), "{refused:?}");
    let refused = one.remove(&lease, Remove::All).await;
    assert!(matches!(refused, Err(StoreError::Fenced { .. })), "{refused:?}");
    append(&other, &stolen, 2, b"3", Some(Phase::Ended)).await.unwrap();
    assert_eq!(page(&one, &id("x")).await.unwrap().unwrap().entries.len(), 3);
}

/// A checkpoint says how long the log was when the session settled. A log that was rewritten since may
/// have that length again, with other entries in it.
#[tokio::test]
async fn a_list_takes_no_checkpoint_of_the_log_before_it_was_rewritten() {
    const REMOVED: usize = 700;
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    // One of these appends makes the log as long as it was.
    for more in 0..REMOVED {
        let lease = claim(&store, &id(&format!("{more:03}"))).await;
        append(&store, &lease, 0, &[b'x'; REMOVED], Some(Phase::Waiting)).await.unwrap();
        snapshot(&store, &lease, 1, &summary(Phase::Waiting)).await;
        store.remove(&lease, Remove::Below(Seq(2))).await.unwrap();
        append(&store, &lease, 2, &vec![b'x'; more], None).await.unwrap();
    }
    for store in [store, open(dir.path()).await] {
        let listed = store.list(&Filter::sessions(), None, 1_000).await.unwrap();
        assert_eq!(listed.rows.len(), REMOVED);
        for row in listed.rows {
            assert_eq!(row.head, Seq(3), "session {}", row.session);
        }
    }
}
