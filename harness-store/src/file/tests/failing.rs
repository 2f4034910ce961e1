use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use harness::Seq;
use harness::store::{
    InboxSeq, Lease, Phase, ReadFrom, ReadRequest, Remove, Sent, SessionStore as _, StoreError,
};

use super::recording::{Op, Recording};
use super::{append, claim, id, message, open, page};
use crate::file::FileStoreOptions;
use crate::file::disk::Disk;
use crate::file::inner::Inner;

const ALL: ReadFrom = ReadFrom::Seq(Seq(1));

#[test]
fn a_failed_sync_is_not_tried_again_until_the_session_is_claimed_again() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Recording::default());
    let options = FileStoreOptions::new().open_files(1);
    let store = options.open_on(Arc::clone(&disk) as Arc<dyn Disk>, dir.path()).unwrap();
    let inner = &*store.inner;
    let lease = claim(inner, "x").unwrap();
    append(inner, &lease, 0, b"1", Phase::Running, true).unwrap();
    disk.faults.syncs.store(1, Ordering::SeqCst);
    let failed = append(inner, &lease, 1, b"2", Phase::Running, true).unwrap_err();
    assert!(failed.is_ambiguous(), "{failed}");
    // The disk would say now that all is well.
    let again = append(inner, &lease, 1, b"2", Phase::Running, true).unwrap_err();
    assert!(again.is_ambiguous(), "{again}");
    assert!(inner.send(&id("x"), &[message("k")]).unwrap_err().is_ambiguous());
    // Nor is it forgotten when other sessions take its place.
    for other in ["a", "b", "c"] {
        claim(inner, other).unwrap();
    }
    assert!(inner.send(&id("x"), &[message("k")]).unwrap_err().is_ambiguous());
    let _ = inner.release(&lease, InboxSeq(0)).unwrap();
    let lease = claim(inner, "x").unwrap();
    let head = page(inner, "x", ALL).unwrap().unwrap().head.0;
    append(inner, &lease, head, b"3", Phase::Running, true).unwrap();
}

#[test]
fn names_that_are_not_durable_fail_the_session_until_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Recording::default());
    let store = open(&disk, dir.path());
    let inner = &*store.inner;
    let lease = claim(inner, "x").unwrap();
    disk.faults.names.store(1, Ordering::SeqCst);
    let failed = append(inner, &lease, 0, b"1", Phase::Running, true).unwrap_err();
    assert!(failed.is_ambiguous(), "{failed}");
    let again = append(inner, &lease, 0, b"1", Phase::Running, true).unwrap_err();
    assert!(again.is_ambiguous(), "{again}");
    let _ = inner.release(&lease, InboxSeq(0)).unwrap();
    let lease = claim(inner, "x").unwrap();
    disk.tape.lock().unwrap().ops.clear();
    let head = page(inner, "x", ALL).unwrap().unwrap().head.0;
    append(inner, &lease, head, b"2", Phase::Running, true).unwrap();
    let tape = disk.tape.lock().unwrap();
    assert!(tape.ops.iter().any(|op| matches!(op, Op::SyncDir(_))), "{:?}", tape.ops);
}

/// The first sync of a log waits for its name: where that has brought all to the disk, the sync of
/// the log itself says nothing of how fast the disk is.
#[test]
fn a_full_disk_is_reported_and_the_log_continues_when_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Recording::default());
    let store = open(&disk, dir.path());
    let inner = &*store.inner;
    let lease = claim(inner, "x").unwrap();
    append(inner, &lease, 0, b"1", Phase::Running, true).unwrap();
    for faults in [&disk.faults.full, &disk.faults.short, &disk.faults.short] {
        faults.store(1, Ordering::SeqCst);
        let full = append(inner, &lease, 1, b"two", Phase::Running, true);
        assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
        let fresh = open(&disk, dir.path());
        assert_eq!(page(&fresh.inner, "x", ALL).unwrap().unwrap().head.0, 1);
    }
    disk.faults.short.store(1, Ordering::SeqCst);
    let full = inner.send(&id("x"), &[message("k")]);
    assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
    append(inner, &lease, 1, b"two", Phase::Running, true).unwrap();
    let posted = inner.send(&id("x"), &[message("k")]).unwrap();
    assert!(matches!(posted, Sent::Accepted(seq) if seq.0 == 1), "{posted:?}");
    append(inner, &lease, 2, b"three", Phase::Ended, true).unwrap();
    let fresh = open(&disk, dir.path());
    let entries = page(&fresh.inner, "x", ALL).unwrap().unwrap().entries;
    let entries: Vec<_> = entries.iter().map(|entry| &*entry.bytes).collect();
    assert_eq!(entries, [&b"1"[..], b"two", b"three"]);
}

#[test]
fn a_claim_reports_what_it_sets_aside() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Recording::default());
    let store = open(&disk, dir.path());
    let lease = claim(&store.inner, "x").unwrap();
    append(&store.inner, &lease, 0, b"1", Phase::Running, true).unwrap();
    disk.faults.short.store(1, Ordering::SeqCst);
    append(&store.inner, &lease, 1, b"torn", Phase::Running, true).unwrap_err();
    drop(store);
    let store = open(&disk, dir.path());
    assert_eq!(page(&store.inner, "x", ALL).unwrap().unwrap().set_aside, 0);
    claim(&store.inner, "x").unwrap();
    let reported = page(&store.inner, "x", ALL).unwrap().unwrap().set_aside;
    assert!(reported > 0);
    // A store that is opened later reports it, too.
    let later = open(&disk, dir.path());
    assert_eq!(page(&later.inner, "x", ALL).unwrap().unwrap().set_aside, reported);
}

/// A session that can be pruned.
fn long(inner: &Inner) -> Lease {
    let lease = claim(inner, "x").unwrap();
    append(inner, &lease, 0, b"1", Phase::Running, true).unwrap();
    append(inner, &lease, 1, b"snapshot", Phase::Running, true).unwrap();
    append(inner, &lease, 2, b"3", Phase::Ended, true).unwrap();
    lease
}

fn copies(inner: &Inner) -> usize {
    let log = inner.log_path(&id("x"));
    let files = std::fs::read_dir(log.parent().unwrap()).unwrap();
    let is_copy = |path: &Path| path.extension().is_some_and(|kind| kind == "next");
    files.filter(|file| is_copy(&file.as_ref().unwrap().path())).count()
}

#[test]
fn a_prune_that_fails_leaves_no_copy() {
    const ALL_BUT_ONE: usize = usize::MAX;
    for room in [1, 2, 20, ALL_BUT_ONE] {
        for then in ["release", "remove", "nothing"] {
            let dir = tempfile::tempdir().unwrap();
            let disk = Arc::new(Recording::default());
            let store = open(&disk, dir.path());
            let inner = &*store.inner;
            let lease = long(inner);
            disk.faults.moved.store(room, Ordering::SeqCst);
            let full = inner.remove(&lease, Remove::Below(Seq(9)));
            assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
            // What lacks its last byte holds once something follows it.
            assert_eq!(copies(inner), usize::from(room == ALL_BUT_ONE));
            match then {
                "release" => drop(inner.release(&lease, InboxSeq(0)).unwrap()),
                "remove" => inner.remove(&lease, Remove::All).unwrap(),
                _ => {}
            }
            if then == "nothing" {
                drop(store);
            } else {
                // It stays open: what it released is free all the same.
                std::mem::forget(store);
            }
            let store = open(&disk, dir.path());
            if then != "remove" {
                claim(&open(&disk, dir.path()).inner, "x").unwrap();
            }
            let found = page(&store.inner, "x", ReadFrom::Snapshot).unwrap();
            assert_eq!(copies(&store.inner), 0, "{room} {then}");
            let first = if room == ALL_BUT_ONE { 2 } else { 1 };
            assert_eq!(
                found.map_or(0, |page| page.first.0),
                if then == "remove" { 0 } else { first }
            );
        }
    }
}

#[tokio::test]
async fn each_file_is_opened_once_idle_logs_are_closed() {
    for kind in ["log", "checkpoint", "lease", "next"] {
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(Recording::default());
        let store = open(&disk, dir.path());
        let lease = long(&store.inner);
        let reader = open(&disk, dir.path());
        claim(&store.inner, "idle").unwrap();
        claim(&reader.inner, "other").unwrap();
        *disk.faults.no_descriptor.lock().unwrap() = Some(kind);
        match kind {
            "lease" => drop(store.renew(&lease, super::LONG).await.unwrap()),
            "next" => store.remove(&lease, Remove::Below(Seq(9))).await.unwrap(),
            _ => {
                let found = reader.read(&id("x"), ReadRequest::entries(ALL)).await.unwrap();
                assert_eq!(found.unwrap().head.0, 3);
            }
        }
        assert_eq!(*disk.faults.no_descriptor.lock().unwrap(), None, "{kind} was not opened");
    }
}

#[test]
fn a_checkpoint_is_written_though_no_descriptor_was_left() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Recording::default());
    let store = open(&disk, dir.path());
    claim(&store.inner, "idle").unwrap();
    let lease = claim(&store.inner, "x").unwrap();
    append(&store.inner, &lease, 0, b"1", Phase::Running, true).unwrap();
    *disk.faults.no_descriptor.lock().unwrap() = Some("checkpoint");
    append(&store.inner, &lease, 1, b"2", Phase::Ended, true).unwrap();
    assert!(store.inner.log_path(&id("x")).with_extension("checkpoint").exists());
}
