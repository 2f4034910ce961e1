//! The checkpoint beside a log: what it protects, and that it never says what is not true.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use harness::store::{InboxSeq, Lease, Phase, ReadFrom, StoreError};

use super::recording::{Op, Recording};
use super::{append, claim, id, open, page};
use crate::file::FileStore;
use crate::file::checkpoint::Checkpoint;
use crate::file::disk::{Disk, DiskFile, Mode, RealDisk};
use crate::file::lease::read_small;

fn path(store: &FileStore) -> PathBuf {
    store.inner.log_path(&id("x")).with_extension("checkpoint")
}

fn read(store: &FileStore) -> Option<Checkpoint> {
    read_small(&RealDisk, &path(store)).unwrap()
}

fn settle(store: &FileStore, lease: &Lease, after: u64) {
    append(&store.inner, lease, after, b"settled", Phase::Interrupted, true).unwrap();
}

fn is_busy(store: &FileStore) -> bool {
    matches!(claim(&store.inner, "x"), Err(StoreError::Busy { .. }))
}

fn len(store: &FileStore) -> u64 {
    std::fs::metadata(store.inner.log_path(&id("x"))).unwrap().len()
}

fn cut(store: &FileStore, len: u64) {
    let log = std::fs::OpenOptions::new().write(true).open(store.inner.log_path(&id("x")));
    log.unwrap().set_len(len).unwrap();
}

#[test]
fn a_session_that_settles_has_a_checkpoint_when_it_is_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Recording::default());
    let (store, other) = (open(&disk, dir.path()), open(&disk, dir.path()));
    let lease = claim(&store.inner, "x").unwrap();
    append(&store.inner, &lease, 0, b"1", Phase::Running, true).unwrap();
    assert_eq!(read(&store), None);
    settle(&store, &lease, 1);
    let found = read(&store).unwrap();
    assert_eq!((found.mark.offset, found.head, found.durable), (len(&store), 2, true));
    // It is written after the log is synced, and costs no sync of its own.
    let tape = disk.tape.lock().unwrap();
    let ops: Vec<&Op> = tape.ops.iter().rev().take(3).collect();
    let [Op::Write(written, 0, _), Op::Create(made, number), Op::Sync(log)] = *ops else {
        panic!("{ops:?}")
    };
    assert!(written == number && log != number && *made == path(&store));
    drop(tape);
    assert!(is_busy(&other));
    store.inner.release(&lease, InboxSeq(0)).unwrap();
    let again = store.inner.release(&lease, InboxSeq(0));
    assert!(matches!(again, Err(StoreError::Fenced { .. })), "{again:?}");
    // The release of one lease is not that of the next.
    let held = claim(&other.inner, "x").unwrap();
    assert!(is_busy(&store));
    other.inner.release(&held, InboxSeq(0)).unwrap();
    assert!(!is_busy(&store));
}

#[test]
fn a_log_that_lost_its_end_or_itself_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Recording::default());
    let store = open(&disk, dir.path());
    let lease = claim(&store.inner, "x").unwrap();
    settle(&store, &lease, 0);
    let whole = len(&store);
    let found = || page(&open(&disk, dir.path()).inner, "x", ReadFrom::Snapshot);
    for lost in 1..=whole {
        cut(&store, whole - lost);
        let found = found();
        assert!(matches!(found, Err(StoreError::Corrupt { .. })), "{lost} lost: {found:?}");
    }
    std::fs::remove_file(store.inner.log_path(&id("x"))).unwrap();
    let found = found();
    assert!(matches!(found, Err(StoreError::Corrupt { .. })), "{found:?}");
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
fn a_holder_that_lost_its_lease_during_the_sync_writes_no_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Recording::default());
    let (store, other) = (open(&disk, dir.path()), open(&disk, dir.path()));
    let lease = claim(&store.inner, "x").unwrap();
    settle(&store, &lease, 0);
    let first = read(&store).unwrap();
    let session = store.inner.session(&id("x"));
    let log = session.lock().file.clone().unwrap();
    // Its sync has stalled until the lease was over, and another holder has settled meanwhile.
    store.inner.release(&lease, InboxSeq(0)).unwrap();
    let next = claim(&other.inner, "x").unwrap();
    settle(&other, &next, 1);
    let second = read(&store).unwrap();
    assert_ne!(first, second);
    store.inner.checkpoint(&session, &lease, &first, &*log);
    assert_eq!(read(&store), Some(second));
    // Or has removed the session: a checkpoint without a log would be damage.
    other.inner.remove(&next, harness::store::Remove::All).unwrap();
    store.inner.checkpoint(&session, &lease, &first, &*log);
    assert_eq!(read(&store), None);
    assert!(page(&open(&disk, dir.path()).inner, "x", ReadFrom::Snapshot).unwrap().is_none());
}

#[test]
fn a_session_is_removed_though_its_checkpoint_is_just_being_written() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&Arc::new(RealDisk), dir.path());
    let lease = claim(&store.inner, "x").unwrap();
    settle(&store, &lease, 0);
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

/// Another process does something just before a checkpoint is read.
struct Meanwhile(std::sync::Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl std::fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meanwhile")
    }
}

impl Disk for Meanwhile {
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        if path.extension().is_some_and(|kind| kind == "checkpoint")
            && let Some(act) = self.0.lock().unwrap().take()
        {
            act();
        }
        RealDisk.open(path, mode)
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.make_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        RealDisk.unlink(path)
    }

    fn exists(&self, path: &Path) -> bool {
        RealDisk.exists(path)
    }
}

#[test]
fn a_checkpoint_that_comes_after_the_log_was_opened_is_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Meanwhile(std::sync::Mutex::default()));
    let reader = open(&disk, dir.path());
    let other = open(&Arc::new(RealDisk), dir.path());
    let act = move || {
        let lease = claim(&other.inner, "x").unwrap();
        settle(&other, &lease, 0);
    };
    *disk.0.lock().unwrap() = Some(Box::new(act));
    // There was no log when it was looked for.
    let found = page(&reader.inner, "x", ReadFrom::Snapshot).unwrap();
    assert_eq!(found.unwrap().head.0, 1);
}
