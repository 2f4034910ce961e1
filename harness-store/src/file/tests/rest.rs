//! What is said of a session at rest: by the tag of its log, and by the note beside it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use harness::store::{InboxSeq, Lease, Phase, ReadFrom, StoreError};
use tokio::runtime::{Builder, Runtime};

use super::recording::{Op, Recording};
use super::{append, claim, id, open, page};
use crate::file::FileStore;
use crate::file::disk::{Disk as _, Mode, RealDisk};
use crate::file::lease::read_small;
use crate::file::rest::Rest;
use crate::file::tag::Tag;

/// Where somebody else sees to the note.
fn runtime() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

fn note(store: &FileStore) -> PathBuf {
    store.inner.log_path(&id("x")).with_extension("head")
}

fn tag(store: &FileStore) -> Option<Tag> {
    Tag::on(&*RealDisk.open(&store.inner.log_path(&id("x")), Mode::Read).unwrap())
}

fn rest(store: &FileStore, lease: &Lease, after: u64) {
    append(&store.inner, lease, after, b"it rests", Phase::Interrupted, true).unwrap();
}

/// A session whose log is tagged, with no note yet.
fn tagged(store: &FileStore) -> Lease {
    let runtime = runtime();
    let _inside = runtime.enter();
    let lease = claim(&store.inner, "x").unwrap();
    rest(store, &lease, 0);
    lease
}

fn is_busy(store: &FileStore) -> bool {
    matches!(claim(&store.inner, "x"), Err(StoreError::Busy { .. }))
}

/// Waits for somebody else to write the note.
fn noted(store: &FileStore, offset: u64) -> Rest {
    for _ in 0..3_000 {
        let rest: Option<Rest> = read_small(&RealDisk, &note(store)).unwrap();
        if let Some(rest) = rest.filter(|rest| rest.offset == offset) {
            return rest;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("no note of byte {offset}")
}

fn len(store: &FileStore) -> u64 {
    std::fs::metadata(store.inner.log_path(&id("x"))).unwrap().len()
}

fn cut(store: &FileStore, len: u64) {
    let log = std::fs::OpenOptions::new().write(true).open(store.inner.log_path(&id("x")));
    log.unwrap().set_len(len).unwrap();
}

#[test]
fn a_session_at_rest_is_tagged_at_once_and_noted_before_long() {
    let runtime = runtime();
    let _inside = runtime.enter();
    let dir = tempfile::tempdir().unwrap();
    let (disk, other) = (Arc::new(RealDisk), Arc::new(RealDisk));
    let (store, other) = (open(&disk, dir.path()), open(&other, dir.path()));
    let lease = claim(&store.inner, "x").unwrap();
    rest(&store, &lease, 0);
    let found = tag(&store).unwrap();
    assert_eq!((found.mark.offset, found.durable, found.released), (len(&store), true, None));
    assert!(is_busy(&other));
    // The lease is given back where the tag is.
    store.inner.release(&lease, InboxSeq(0)).unwrap();
    assert_eq!(tag(&store).unwrap().released, Some(lease.token));
    assert!(!note(&store).with_extension("lease").exists());
    let again = store.inner.release(&lease, InboxSeq(0));
    assert!(matches!(again, Err(StoreError::Fenced { .. })), "{again:?}");
    let told = noted(&store, len(&store));
    assert_eq!(Tag::of(&told), tag(&store).unwrap());
    // What they say of one lease is not said of the next, which rests no more.
    let held = claim(&other.inner, "x").unwrap();
    assert!(is_busy(&store));
    other.inner.release(&held, InboxSeq(0)).unwrap();
    assert!(!is_busy(&store));
}

#[test]
fn a_log_that_lost_its_end_is_missed_by_its_tag_alone_and_by_its_note_alone() {
    for tagged in [true, false] {
        let runtime = runtime();
        let _inside = runtime.enter();
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(Recording::default());
        disk.faults.no_tags.store(!tagged, Ordering::SeqCst);
        let store = open(&disk, dir.path());
        let lease = claim(&store.inner, "x").unwrap();
        rest(&store, &lease, 0);
        assert_eq!(tag(&store).is_some(), tagged);
        assert_eq!(note(&store).exists(), !tagged);
        let whole = len(&store);
        for lost in 1..=whole {
            cut(&store, whole - lost);
            let found = page(&open(&disk, dir.path()).inner, "x", ReadFrom::Snapshot);
            assert!(matches!(found, Err(StoreError::Corrupt { .. })), "{lost} lost: {found:?}");
        }
    }
}

#[test]
fn a_tag_gives_way_to_a_note() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Recording::default());
    let store = open(&disk, dir.path());
    let lease = tagged(&store);
    assert!(tag(&store).is_some());
    // Who calls from no runtime waits for all, and so has a note at once.
    rest(&store, &lease, 1);
    assert!(tag(&store).is_none() && note(&store).exists());
    store.inner.release(&lease, InboxSeq(0)).unwrap();
    let whole = len(&store);
    cut(&store, whole - 1);
    let found = page(&open(&disk, dir.path()).inner, "x", ReadFrom::Snapshot);
    assert!(matches!(found, Err(StoreError::Corrupt { .. })), "{found:?}");
}

#[test]
fn nothing_is_noted_of_a_session_that_went_on_or_away() {
    let runtime = runtime();
    let _inside = runtime.enter();
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(RealDisk);
    let store = open(&disk, dir.path());
    let lease = claim(&store.inner, "x").unwrap();
    rest(&store, &lease, 0);
    let first = store.inner.summary(&store.inner.log_path(&id("x"))).unwrap().unwrap();
    rest(&store, &lease, 1);
    let last = noted(&store, len(&store));
    // A note that comes late.
    let write = |rest: &Rest| crate::file::notes::write_now(&store.inner.disk, &note(&store), rest);
    assert!(!write(&first));
    std::fs::remove_file(note(&store)).unwrap();
    assert!(write(&last) && note(&store).exists());
    // One that comes while its log is being taken away, or after that.
    let log = store.inner.log_path(&id("x"));
    let held = RealDisk.open(&log, Mode::Append).unwrap();
    assert!(held.try_lock().unwrap());
    assert!(!write(&last));
    held.unlock();
    store.inner.remove(&lease, harness::store::Remove::All).unwrap();
    assert!(!write(&last) && !note(&store).exists());
    // And one whose session was begun anew.
    let lease = claim(&store.inner, "x").unwrap();
    rest(&store, &lease, 0);
    assert!(!write(&last));
}

#[test]
fn a_damaged_session_is_listed_by_what_can_be_read_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Recording::default());
    let store = open(&disk, dir.path());
    let lease = claim(&store.inner, "x").unwrap();
    append(&store.inner, &lease, 0, b"1", Phase::Running, true).unwrap();
    append(&store.inner, &lease, 1, b"2", Phase::Running, true).unwrap();
    drop(store);
    let store = open(&disk, dir.path());
    let log = store.inner.log_path(&id("x"));
    let mut bytes = std::fs::read(&log).unwrap();
    let last = bytes.len() - 3;
    bytes[last] ^= 1;
    std::fs::write(&log, bytes).unwrap();
    let read = page(&store.inner, "x", ReadFrom::Snapshot);
    assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{read:?}");
    let listing = store.inner.list(&harness::store::Filter::sessions(), None, 10).unwrap();
    let found: Vec<_> = listing.rows.iter().map(|row| (row.session.as_str(), row.head.0)).collect();
    assert_eq!(found, [("x", 1)]);
}

#[test]
fn to_come_to_rest_makes_no_file() {
    let runtime = runtime();
    let _inside = runtime.enter();
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Recording::default());
    let store = open(&disk, dir.path());
    let lease = claim(&store.inner, "x").unwrap();
    let begun = disk.tape.lock().unwrap().ops.len();
    rest(&store, &lease, 0);
    let tape = disk.tape.lock().unwrap();
    let made: Vec<&Path> = tape.ops[begun..]
        .iter()
        .filter_map(|op| if let Op::Create(path, _) = op { Some(path.as_path()) } else { None })
        .filter(|path| path.extension().is_some_and(|kind| kind == "head"))
        .collect();
    assert!(made.is_empty(), "{made:?}");
}

#[test]
fn whoever_comes_late_says_nothing_of_a_session_that_another_has() {
    let runtime = runtime();
    let _inside = runtime.enter();
    for tagged in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(Recording::default());
        disk.faults.no_tags.store(!tagged, Ordering::SeqCst);
        let (store, other) = (open(&disk, dir.path()), open(&disk, dir.path()));
        let lease = claim(&store.inner, "x").unwrap();
        rest(&store, &lease, 0);
        let session = store.inner.session(&id("x"));
        let (first, log) = {
            let state = session.lock();
            (Rest::of(&state.index).unwrap(), state.file.clone().unwrap())
        };
        // Its sync has hung until the lease was over, and another has come to rest meanwhile.
        store.inner.release(&lease, InboxSeq(0)).unwrap();
        let next = claim(&other.inner, "x").unwrap();
        rest(&other, &next, 1);
        other.inner.release(&next, InboxSeq(0)).unwrap();
        let said = || (tag(&store), std::fs::read(note(&store)).ok());
        let before = said();
        store.inner.note_rest(&session, &lease, first, log);
        assert_eq!(said(), before);
    }
}

#[test]
fn a_note_that_says_more_than_the_tag_counts() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Recording::default());
    let store = open(&disk, dir.path());
    let lease = tagged(&store);
    let old = tag(&store).unwrap();
    rest(&store, &lease, 1);
    // A loss of power has taken back that the tag was dropped.
    let log = RealDisk.open(&store.inner.log_path(&id("x")), Mode::Append).unwrap();
    assert!(old.put(&*log));
    cut(&store, len(&store) - 1);
    let found = page(&open(&disk, dir.path()).inner, "x", ReadFrom::Snapshot);
    assert!(matches!(found, Err(StoreError::Corrupt { .. })), "{found:?}");
}

#[test]
fn a_session_is_taken_away_though_its_note_is_just_being_written() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&Arc::new(RealDisk), dir.path());
    let lease = claim(&store.inner, "x").unwrap();
    rest(&store, &lease, 0);
    let log = store.inner.log_path(&id("x"));
    let held = RealDisk.open(&log, Mode::Append).unwrap();
    assert!(held.try_lock().unwrap());
    let removing = std::thread::spawn({
        let (store, lease) = (store.clone(), lease.clone());
        move || store.inner.remove(&lease, harness::store::Remove::All)
    });
    // Who does not wait for the lock is soon done.
    let begun = Instant::now();
    while !removing.is_finished() && begun.elapsed() < Duration::from_millis(30) {
        std::thread::yield_now();
    }
    assert!(log.exists());
    held.unlock();
    removing.join().unwrap().unwrap();
    assert!(!log.exists());
}

#[test]
fn a_lease_that_was_renewed_for_less_is_held_for_less() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&Arc::new(RealDisk), dir.path());
    let lease = claim(&store.inner, "x").unwrap();
    append(&store.inner, &lease, 0, b"1", Phase::Running, true).unwrap();
    store.inner.renew(&lease, Duration::from_millis(1)).unwrap();
    let held = || page(&store.inner, "x", ReadFrom::Snapshot).unwrap().unwrap().holder;
    while held().is_some() {
        std::thread::yield_now();
    }
    assert!(!is_busy(&store));
}
