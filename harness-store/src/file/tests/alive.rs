//! Who lives, and what is free because somebody does not.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use harness::store::{Phase, StoreError};

use super::{append, claim};
use crate::file::disk::RealDisk;
use crate::file::{FileStore, FileStoreOptions};

/// As another process would open it.
fn open_anew(dir: &Path) -> FileStore {
    FileStoreOptions::new().open_on(Arc::new(RealDisk), dir).unwrap()
}

fn signs(dir: &Path) -> BTreeSet<String> {
    let signs = std::fs::read_dir(dir.join("alive")).unwrap();
    signs.map(|sign| sign.unwrap().file_name().into_string().unwrap()).collect()
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
async fn what_a_dropped_store_held_is_free_though_its_process_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let first = FileStore::open(dir.path()).await.unwrap();
    let second = FileStore::open(dir.path()).await.unwrap();
    assert_eq!(signs(dir.path()).len(), 1, "a process has one sign");
    assert_ne!(first.inner.owner.id, second.inner.owner.id);
    claim(&first.inner, "one").unwrap();
    claim(&second.inner, "two").unwrap();
    let other = open_anew(dir.path());
    assert!(is_busy(&second, "one") && is_busy(&other, "one") && is_busy(&other, "two"));
    drop(first);
    assert!(!is_busy(&second, "one"));
    assert!(is_busy(&other, "one") && is_busy(&other, "two"));
    drop(second);
    assert!(!is_busy(&other, "one") && !is_busy(&other, "two"));
}

#[test]
fn the_sign_of_a_dead_process_becomes_that_of_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let first = open_anew(dir.path());
    claim(&first.inner, "one").unwrap();
    let before = signs(dir.path());
    drop(first);
    assert_eq!(signs(dir.path()), before);
    let next = open_anew(dir.path());
    let after = signs(dir.path());
    assert!(after.len() == 1 && after.is_disjoint(&before), "{before:?} {after:?}");
    assert!(!is_busy(&next, "one"), "who has the file now is not who had it");
    let third = open_anew(dir.path());
    assert!(signs(dir.path()).len() == 2 && signs(dir.path()).is_superset(&after));
    assert!(is_busy(&third, "one"));
}

#[tokio::test]
async fn a_sign_that_was_taken_away_is_not_shared() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let first = FileStore::open(&path).await.unwrap();
    std::fs::remove_dir_all(&path).unwrap();
    let second = FileStore::open(&path).await.unwrap();
    claim(&second.inner, "one").unwrap();
    assert!(is_busy(&open_anew(&path), "one"));
    drop(first);
    assert!(is_busy(&open_anew(&path), "one"));
}

#[test]
fn a_session_at_rest_is_released_in_its_note() {
    let dir = tempfile::tempdir().unwrap();
    let (store, other) = (open_anew(dir.path()), open_anew(dir.path()));
    let lease = claim(&store.inner, "x").unwrap();
    append(&store.inner, &lease, 0, b"1", Phase::Interrupted, true).unwrap();
    assert!(is_busy(&other, "x"));
    store.inner.renew(&lease, Duration::ZERO).unwrap();
    let of_lease = store.inner.log_path(&lease.session).with_extension("lease");
    assert!(!of_lease.exists());
    let again = store.inner.renew(&lease, Duration::ZERO);
    assert!(matches!(again, Err(StoreError::Fenced { .. })), "{again:?}");

    // What it says of one lease is not said of the next, which rests no more.
    let held = claim(&other.inner, "x").unwrap();
    assert!(is_busy(&store, "x"));
    other.inner.renew(&held, Duration::ZERO).unwrap();
    assert!(of_lease.exists());
    assert!(!is_busy(&store, "x"));
}
