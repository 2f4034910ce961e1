//! Which sessions a store counts as held: only while it holds no second one does it wait in place.

use std::sync::Arc;
use std::time::Duration;

use harness::store::{InboxSeq, Phase, Remove};

use super::recording::Recording;
use super::{append, claim, open};
use crate::file::FileStore;

/// Whether the store would wait in place, on a disk that has been fast.
fn alone(store: &FileStore) -> bool {
    let pace = &store.inner.holding.pace;
    (0..100).for_each(|_| pace.took(Duration::from_micros(50)));
    pace.is_short()
}

#[test]
fn a_session_counts_for_as_long_as_its_lease_is_held() {
    let parent = tempfile::tempdir().unwrap();
    let disk = Arc::new(Recording::default());
    let store = open(&disk, &parent.path().join("store"));
    let inner = &store.inner;
    let one = claim(inner, "one").unwrap();
    append(inner, &one, 0, b"1", Phase::Running, true).unwrap();
    assert!(alone(&store));
    // Released, removed, and lost to somebody else.
    let two = claim(inner, "two").unwrap();
    append(inner, &two, 0, b"1", Phase::Running, true).unwrap();
    assert!(!alone(&store));
    inner.release(&two, InboxSeq(0)).unwrap();
    assert!(alone(&store));

    let two = claim(inner, "two").unwrap();
    assert!(!alone(&store));
    inner.remove(&two, Remove::All).unwrap();
    assert!(alone(&store));

    let three = inner.claim(&super::id("three"), Duration::ZERO).unwrap().lease;
    append(inner, &three, 0, b"1", Phase::Running, true).unwrap();
    assert!(!alone(&store));
    let other = open(&disk, &parent.path().join("store"));
    claim(&other.inner, "three").unwrap();
    assert!(append(inner, &three, 1, b"2", Phase::Running, true).is_err());
    assert!(alone(&store));
}

#[test]
fn what_has_just_been_slow_is_waited_for_elsewhere() {
    let parent = tempfile::tempdir().unwrap();
    let store = open(&Arc::new(Recording::default()), &parent.path().join("store"));
    assert!(alone(&store));
    store.inner.holding.pace.took(Duration::from_millis(20));
    assert!(!store.inner.holding.pace.is_short());
}
