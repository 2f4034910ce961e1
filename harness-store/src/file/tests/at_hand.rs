//! A short log is kept in memory from when it is opened until it is first read: whatever happens to it
//! between, who reads it finds what others find.

use std::sync::Arc;
use std::time::Duration;

use harness::Seq;
use harness::store::{Lease, Page, Phase, ReadFrom, Remove};

use super::{append, claim, id, message, open, page};
use crate::file::disk::RealDisk;
use crate::file::session::Session;
use crate::file::store::Inner;

fn said(page: Option<&Page>) -> String {
    let Some(page) = page else { return "none".to_owned() };
    let entry = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let entries = page.entries.iter().map(|one| (one.seq.0, entry(&one.bytes)));
    format!("{:?} {:?} {:?}", page.first, entries.collect::<Vec<_>>(), page.messages)
}

fn goes_on(inner: &Inner, lease: &Lease) {
    append(inner, lease, 3, b"four", Phase::Running, true).unwrap();
}

fn gets_letters(inner: &Inner, _: &Lease) {
    inner.send(&id("x"), &[message("k")]).unwrap();
}

fn is_pruned(inner: &Inner, lease: &Lease) {
    append(inner, lease, 3, b"snapshot", Phase::Interrupted, true).unwrap();
    inner.remove(lease, Remove::Below(Seq(4))).unwrap();
}

fn is_begun_anew(inner: &Inner, lease: &Lease) {
    inner.remove(lease, Remove::All).unwrap();
    let lease = claim(inner, "x").unwrap();
    append(inner, &lease, 0, b"other", Phase::Interrupted, true).unwrap();
}

fn is_gone(inner: &Inner, lease: &Lease) {
    inner.remove(lease, Remove::All).unwrap();
}

/// Opens the log as where files are opened without waiting for them.
fn opened(inner: &Inner) -> Arc<Session> {
    let session = inner.session(&id("x"));
    let mut state = session.lock();
    session.refresh(&*inner.disk, &mut state).unwrap();
    state.just_read = Some(std::fs::read(&session.paths.log).unwrap());
    drop(state);
    session
}

fn stays(_: &Inner, _: &Lease) {}

#[test]
fn what_was_opened_is_read_as_others_read_it() {
    let disk = Arc::new(RealDisk);
    for (number, change) in
        [stays, goes_on, gets_letters, is_pruned, is_begun_anew, is_gone].into_iter().enumerate()
    {
        let dir = tempfile::tempdir().unwrap();
        let writes = open(&disk, dir.path());
        let lease = claim(&writes.inner, "x").unwrap();
        for (after, bytes) in [b"one", b"two", b"six"].into_iter().enumerate() {
            append(&writes.inner, &lease, after as u64, bytes, Phase::Running, true).unwrap();
        }
        let reads = open(&disk, dir.path());
        let session = opened(&reads.inner);
        change(&writes.inner, &lease);
        let fresh = open(&disk, dir.path());
        let expected = page(&fresh.inner, "x", ReadFrom::Seq(Seq(4)));
        let found = page(&reads.inner, "x", ReadFrom::Seq(Seq(4)));
        assert_eq!(said(found.unwrap().as_ref()), said(expected.unwrap().as_ref()), "{number}");
        for from in [ReadFrom::Snapshot, ReadFrom::Seq(Seq(1))] {
            let found = page(&reads.inner, "x", from).ok().flatten();
            let expected = page(&fresh.inner, "x", from).ok().flatten();
            assert_eq!(said(found.as_ref()), said(expected.as_ref()), "{number} {from:?}");
        }
        assert!(session.lock().just_read.is_none(), "{number}");
    }
}

#[test]
fn what_only_looks_at_it_does_not_keep_it() {
    let disk = Arc::new(RealDisk);
    let dir = tempfile::tempdir().unwrap();
    let writes = open(&disk, dir.path());
    let lease = claim(&writes.inner, "x").unwrap();
    append(&writes.inner, &lease, 0, b"one", Phase::Running, true).unwrap();
    let other = open(&disk, dir.path());
    let session = opened(&other.inner);
    other.inner.claim(&id("x"), Duration::from_secs(1)).unwrap_err();
    assert!(session.lock().just_read.is_none());
}
