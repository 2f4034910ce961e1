//! A disk that stalls holds up only the calls that wait for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use harness::UtcMillis;
use harness::store::{Batch, NewEntry, Phase, SessionStore as _};

use super::recording::Recording;
use super::{LONG, id, message, open, summary};

#[tokio::test(flavor = "current_thread")]
async fn a_sync_that_stalls_blocks_no_other_task_of_its_thread() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Recording::default());
    let store = open(&disk, dir.path());
    // Syncs have been fast so far.
    for n in 0..50 {
        let lease = store.claim(&id("fast"), LONG).await.unwrap().lease;
        let summary = summary(Phase::Ended);
        let entries = [NewEntry { bytes: b"1", snapshot: false }];
        let (after, at) = (harness::Seq(n), UtcMillis(1));
        let flush = true;
        let batch = Batch {
            after,
            at,
            entries: &entries,
            summary: Some(&summary),
            flush,
            ..Batch::default()
        };
        store.append(&lease, batch).await.unwrap();
        store.release(&lease, harness::store::InboxSeq(0)).await.unwrap();
    }
    let lease = store.claim(&id("x"), LONG).await.unwrap().lease;
    disk.faults.stalled.store(true, Ordering::SeqCst);
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            let summary = summary(Phase::Running);
            let entries = [NewEntry { bytes: b"1", snapshot: false }];
            let batch = Batch {
                at: UtcMillis(1),
                entries: &entries,
                summary: Some(&summary),
                flush: true,
                ..Batch::default()
            };
            store.append(&lease, batch).await.map(|_| ())
        }
    });
    let sender = tokio::spawn({
        let store = store.clone();
        async move { store.send(&id("fast"), &[message("k")]).await.map(|_| ()) }
    });
    // The thread runs other tasks, and other sessions, all the while.
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let other = store.claim(&id("other"), LONG).await;
        if let Ok(other) = other {
            store.renew(&other.lease, LONG).await.unwrap();
        }
    }
    assert!(!writer.is_finished() && !sender.is_finished());
    disk.faults.stalled.store(false, Ordering::SeqCst);
    writer.await.unwrap().unwrap();
    sender.await.unwrap().unwrap();
}
