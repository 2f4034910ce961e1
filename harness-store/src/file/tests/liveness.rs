//! Which stores are open, and what is free because one is not.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use harness::SessionId;
use harness::store::{FormerHolder, InboxSeq, StoreError};

use super::recording::{Recording, Restarted};
use super::{LONG, claim, open};
use crate::file::disk::RealDisk;
use crate::file::{FileStore, FileStoreOptions};

/// As another process would open it.
fn open_other(dir: &Path) -> FileStore {
    FileStoreOptions::new().open_on(Arc::new(RealDisk), dir).unwrap()
}

/// The file that shows that a store is open.
fn file_of(store: &FileStore, dir: &Path) -> std::path::PathBuf {
    let number = format!("{:016x}", store.inner.liveness.id);
    let files = std::fs::read_dir(dir.join("open")).unwrap().map(|file| file.unwrap().path());
    let mut own = files.filter(|file| std::fs::read_to_string(file).unwrap() == number);
    own.next().unwrap()
}

fn is_busy(store: &FileStore, session: &str) -> bool {
    match claim(&store.inner, session) {
        Err(StoreError::Busy { .. }) => true,
        other => {
            other.unwrap();
            false
        }
    }
}

#[tokio::test]
async fn what_a_dropped_store_held_is_free_though_its_process_continues() {
    let dir = tempfile::tempdir().unwrap();
    let first = FileStore::open(dir.path()).await.unwrap();
    let second = FileStore::open(dir.path()).await.unwrap();
    assert_ne!(first.inner.liveness.id, second.inner.liveness.id);
    claim(&first.inner, "one").unwrap();
    claim(&second.inner, "two").unwrap();
    let other = open_other(dir.path());
    assert!(is_busy(&second, "one") && is_busy(&other, "one") && is_busy(&other, "two"));
    drop(first);
    assert!(!is_busy(&second, "one"));
    assert!(is_busy(&other, "one") && is_busy(&other, "two"));
    drop(second);
    assert!(!is_busy(&other, "one") && !is_busy(&other, "two"));
}

#[test]
fn a_claim_says_whether_the_store_of_the_former_holder_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (open_other(dir.path()), open_other(dir.path()));
    let claim = |store: &FileStore, session: &str, ttl| {
        store.inner.claim(&SessionId::new(session).unwrap(), ttl).unwrap()
    };
    assert_eq!(claim(&first, "one", LONG).former, FormerHolder::Released);
    claim(&first, "two", Duration::ZERO);
    assert_eq!(claim(&second, "two", LONG).former, FormerHolder::Expired);
    drop(first);
    let dead = claim(&second, "one", LONG);
    assert_eq!(dead.former, FormerHolder::Dead);
    second.inner.release(&dead.lease, InboxSeq(0)).unwrap();
    assert_eq!(claim(&second, "one", LONG).former, FormerHolder::Released);
}

#[test]
fn a_store_lives_until_it_is_dropped_and_leaves_its_file_to_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let first = open_other(dir.path());
    let number = first.inner.liveness.id;
    let others: Vec<FileStore> = (0..3).map(|_| open_other(dir.path())).collect();
    let lives = |number| others.iter().all(|other| other.inner.liveness.is_open(number));
    assert!(lives(number) && first.inner.liveness.is_open(number));
    assert!(!lives(0) && !lives(number ^ 1));
    let clone = first.clone();
    drop(first);
    assert!(lives(number), "another handle of it is open");
    drop(clone);
    assert!(!lives(number));
    drop(others);
    let next = open_other(dir.path());
    assert!(!next.inner.liveness.is_open(number));
    assert_eq!(std::fs::read_dir(dir.path().join("open")).unwrap().count(), 4);
}

#[tokio::test]
async fn open_stores_are_found_where_the_directory_was_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let first = FileStore::open(&path).await.unwrap();
    std::fs::remove_dir_all(&path).unwrap();
    let second = FileStore::open(&path).await.unwrap();
    claim(&second.inner, "one").unwrap();
    assert!(is_busy(&open_other(&path), "one"));
    drop(first);
    assert!(is_busy(&open_other(&path), "one"));
}

#[test]
fn a_store_without_locks_is_not_taken_for_dead() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Recording::default());
    disk.faults.no_locks.store(true, Ordering::SeqCst);
    let without = open(&disk, dir.path());
    disk.faults.no_locks.store(false, Ordering::SeqCst);
    claim(&without.inner, "one").unwrap();
    let other = open_other(dir.path());
    assert!(is_busy(&other, "one"));
    assert!(other.inner.liveness.is_open(without.inner.liveness.id));
}

#[test]
fn an_open_file_keeps_no_store_alive() {
    let dir = tempfile::tempdir().unwrap();
    let (store, other) = (open_other(dir.path()), open_other(dir.path()));
    let number = store.inner.liveness.id;
    // As a process has that is just being started.
    let file = Arc::clone(&store.inner.liveness.file);
    drop(store);
    assert!(!other.inner.liveness.is_open(number));
    drop(file);
}

#[test]
fn the_file_of_a_store_that_was_not_closed_is_taken_over_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let open_stores = dir.path().join("open");
    let (killed, lives) = (open_other(dir.path()), open_other(dir.path()));
    claim(&killed.inner, "one").unwrap();
    assert!(is_busy(&lives, "one"));
    // As the system does when it ends the process.
    killed.inner.liveness.file.unlock();
    let number = killed.inner.liveness.id;
    assert!(!lives.inner.liveness.is_open(number));
    let next = open_other(dir.path());
    assert_eq!(std::fs::read_dir(&open_stores).unwrap().count(), 2);
    assert_ne!(next.inner.liveness.id, number);
    assert!(!lives.inner.liveness.is_open(number), "its file is locked by another store");
    assert!(lives.inner.liveness.is_open(next.inner.liveness.id));
    assert!(!is_busy(&lives, "one"));
}

#[test]
fn a_holder_whose_file_was_deleted_keeps_its_lease_until_it_expires() {
    let dir = tempfile::tempdir().unwrap();
    let (holder, other) = (open_other(dir.path()), open_other(dir.path()));
    let lease = claim(&holder.inner, "one").unwrap();
    for open_stores in [false, true] {
        match open_stores {
            false => std::fs::remove_file(file_of(&holder, dir.path())).unwrap(),
            true => std::fs::remove_dir_all(dir.path().join("open")).unwrap(),
        }
        let new = open_other(dir.path());
        assert!(is_busy(&other, "one") && is_busy(&new, "one"));
        // Another file that a store makes there is not taken for it.
        assert!(is_busy(&open_other(dir.path()), "one"));
    }
    holder.inner.renew(&lease, std::time::Duration::ZERO).unwrap();
    assert!(!is_busy(&other, "one"));
}

#[test]
fn a_holder_is_known_to_be_dead_once_the_machine_has_restarted() {
    for locks in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(Recording::default());
        disk.faults.no_locks.store(!locks, Ordering::SeqCst);
        let holder = open(&disk, dir.path());
        disk.faults.no_locks.store(false, Ordering::SeqCst);
        claim(&holder.inner, "one").unwrap();
        assert!(is_busy(&open_other(dir.path()), "one"));
        drop(holder);
        if locks {
            std::fs::remove_dir_all(dir.path().join("open")).unwrap();
        }
        assert!(is_busy(&open_other(dir.path()), "one"), "it may be open");
        let options = FileStoreOptions::new();
        let restarted = options.open_on(Arc::new(Restarted), dir.path()).unwrap();
        assert!(!is_busy(&restarted, "one"));
    }
}

#[test]
fn a_file_whose_contents_were_lost_with_the_power_belongs_to_no_store_of_before() {
    let dir = tempfile::tempdir().unwrap();
    let holder = open_other(dir.path());
    claim(&holder.inner, "one").unwrap();
    std::fs::write(file_of(&holder, dir.path()), "").unwrap();
    drop(holder);
    let options = FileStoreOptions::new();
    let restarted = options.open_on(Arc::new(Restarted), dir.path()).unwrap();
    assert!(!is_busy(&restarted, "one"));
}

#[test]
fn a_store_of_the_first_version_is_open_while_its_file_is_locked() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_other(dir.path());
    let number = 0x31ae_219d_01d6_11a5;
    assert!(!store.inner.liveness.is_open(number));
    let file = std::fs::File::create(dir.path().join(format!("open/{number:016x}"))).unwrap();
    file.lock().unwrap();
    assert!(store.inner.liveness.is_open(number));
    drop(open_other(dir.path()));
    drop(file);
    assert!(!store.inner.liveness.is_open(number));
}
