//! Plain copies of a store: what one may lack, and that the store itself may lack nothing.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::Seq;
use harness::store::{Filter, InboxSeq, Phase, ReadFrom, Remove, StoreError};

use super::{append, claim, id, message, open, page};
use crate::file::FileStore;
use crate::file::disk::RealDisk;
use crate::file::place::PLACE;

const ALL: ReadFrom = ReadFrom::Seq(Seq(1));

fn real(dir: &Path) -> FileStore {
    open(&Arc::new(RealDisk), dir)
}

/// Copies as `cp -r` does.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for file in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(file.file_name());
        if file.file_type().unwrap().is_dir() {
            copy(&file.path(), &to);
        } else {
            std::fs::copy(file.path(), &to).unwrap();
        }
    }
    // Files that are made within one tick of the clock of the file system have one time.
    let made =
        |dir: &Path| std::fs::metadata(dir.join(PLACE)).map(|found| found.created().unwrap());
    if let Ok(before) = made(from) {
        while made(to).unwrap() == before {
            std::fs::remove_file(to.join(PLACE)).unwrap();
            std::fs::copy(from.join(PLACE), to.join(PLACE)).unwrap();
        }
    }
}

fn set_len(log: &Path, len: u64) {
    OpenOptions::new().write(true).open(log).unwrap().set_len(len).unwrap();
}

/// A store with a session that settled once and continued, the log as it was when it settled first,
/// and its path in another directory.
struct Made {
    dir: tempfile::TempDir,
    first: Vec<u8>,
    whole: u64,
}

impl Made {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = real(&dir.path().join("store"));
        let lease = claim(&store.inner, "x").unwrap();
        append(&store.inner, &lease, 0, b"1", Phase::Interrupted, true).unwrap();
        let log = store.inner.log_path(&id("x"));
        let first = std::fs::read(&log).unwrap();
        store.inner.send(&id("x"), &[message("k")]).unwrap();
        append(&store.inner, &lease, 1, b"2", Phase::Interrupted, true).unwrap();
        let whole = std::fs::metadata(log).unwrap().len();
        Self { dir, first, whole }
    }

    fn place(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn log(&self, name: &str) -> PathBuf {
        let store = real(&self.place("store"));
        let log = store.inner.log_path(&id("x"));
        self.place(name).join(log.strip_prefix(self.place("store")).unwrap())
    }
}

/// Ends the threads of a test, also of one that fails.
struct Stop<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}

fn is_corrupt<T: std::fmt::Debug>(found: &Result<T, StoreError>) -> bool {
    matches!(found, Err(StoreError::Corrupt { .. }))
}

#[test]
fn a_copy_whose_log_is_older_than_its_checkpoint_continues_where_the_log_ends() {
    let made = Made::new();
    // A record that lacks only its last byte is whole once something follows it.
    for len in (made.first.len() as u64..made.whole - 1).step_by(3) {
        let name = format!("copy {len}");
        copy(&made.place("store"), &made.place(&name));
        set_len(&made.log(&name), len);
        let store = real(&made.place(&name));
        // Messages are written without a claim.
        if len.is_multiple_of(2) {
            store.inner.send(&id("x"), &[message("other")]).unwrap();
        }
        let rows = store.inner.list(&Filter::sessions(), None, 9).unwrap().rows;
        assert_eq!(rows[0].head.0, 1, "{len}");
        let lease = claim(&store.inner, "x").unwrap();
        append(&store.inner, &lease, 1, b"another", Phase::Interrupted, true).unwrap();
        append(&store.inner, &lease, 2, b"third", Phase::Ended, true).unwrap();
        store.inner.release(&lease, InboxSeq(0)).unwrap();
        drop(store);
        let found = page(&real(&made.place(&name)).inner, "x", ALL).unwrap().unwrap();
        let entries: Vec<_> = found.entries.iter().map(|entry| &*entry.bytes).collect();
        assert_eq!(entries, [&b"1"[..], b"another", b"third"], "{len}");
        // From here on it is as any other store.
        let acknowledged = {
            let text = std::fs::read(made.log(&name)).unwrap();
            text[..text.len() - 2].windows(2).rposition(|pair| pair == b"\n\n").unwrap() + 1
        };
        set_len(&made.log(&name), acknowledged as u64 - 1);
        let found = page(&real(&made.place(&name)).inner, "x", ALL);
        assert!(is_corrupt(&found), "{len}: {found:?}");
    }
}

#[test]
fn a_store_that_was_moved_or_has_lost_its_place_is_no_copy() {
    let made = Made::new();
    let cut = |name: &str| {
        set_len(&made.log(name), made.first.len() as u64);
        let found = page(&real(&made.place(name)).inner, "x", ALL);
        assert!(is_corrupt(&found), "{name}: {found:?}");
    };
    copy(&made.place("store"), &made.place("no place"));
    std::fs::remove_file(made.place("no place").join(PLACE)).unwrap();
    cut("no place");
    copy(&made.place("store"), &made.place("torn"));
    std::fs::write(made.place("torn").join(PLACE), "half").unwrap();
    cut("torn");
    // A copy of the sessions alone, into a store that was there.
    drop(real(&made.place("other")));
    copy(&made.place("store/sessions"), &made.place("other/sessions"));
    cut("other");
    let log = made.log("moved");
    std::fs::rename(made.place("store"), made.place("moved")).unwrap();
    set_len(&log, made.first.len() as u64);
    for _ in 0..2 {
        let found = page(&real(&made.place("moved")).inner, "x", ALL);
        assert!(is_corrupt(&found), "{found:?}");
    }
}

#[test]
fn what_a_copy_has_is_checked_as_ever() {
    let made = Made::new();
    copy(&made.place("store"), &made.place("copy"));
    let mut bytes = made.first.clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(made.log("copy"), bytes).unwrap();
    let found = page(&real(&made.place("copy")).inner, "x", ALL);
    assert!(is_corrupt(&found), "{found:?}");
}

#[test]
fn a_copy_may_lack_the_log_of_a_checkpoint() {
    let made = Made::new();
    copy(&made.place("store"), &made.place("copy"));
    let log = made.log("copy");
    std::fs::remove_file(&log).unwrap();
    let store = real(&made.place("copy"));
    assert!(page(&store.inner, "x", ALL).unwrap().is_none());
    let lease = claim(&store.inner, "x").unwrap();
    append(&store.inner, &lease, 0, b"new", Phase::Ended, true).unwrap();
    drop(store);
    let found = page(&real(&made.place("copy")).inner, "x", ALL).unwrap().unwrap();
    assert_eq!(found.entries[0].bytes, b"new");
    std::fs::remove_file(&log).unwrap();
    let found = page(&real(&made.place("copy")).inner, "x", ALL);
    assert!(is_corrupt(&found), "{found:?}");
}

#[test]
fn a_copy_does_not_continue_in_a_part_of_a_rewritten_log() {
    let dir = tempfile::tempdir().unwrap();
    let (place, to) = (dir.path().join("store"), dir.path().join("copy"));
    let store = real(&place);
    let lease = claim(&store.inner, "x").unwrap();
    append(&store.inner, &lease, 0, b"1", Phase::Running, true).unwrap();
    append(&store.inner, &lease, 1, b"snapshot", Phase::Ended, true).unwrap();
    let log = store.inner.log_path(&id("x"));
    // The log before it was rewritten, up to the record that names the copy.
    let old = std::fs::File::open(&log).unwrap();
    store.inner.remove(&lease, Remove::Below(Seq(9))).unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut &old, &mut text).unwrap();
    let name = text.trim_end().rsplit(' ').next().unwrap().to_owned();
    assert!(name.ends_with(".next"), "{name}");
    drop((store, lease));
    copy(&place, &to);
    let copied = to.join(log.strip_prefix(&place).unwrap());
    let new = std::fs::read(&copied).unwrap();
    for part in [0, new.len() / 2, new.len()] {
        std::fs::write(&copied, &text).unwrap();
        std::fs::write(copied.with_file_name(&name), &new[..part]).unwrap();
        let store = real(&to);
        let found = page(&store.inner, "x", ALL).unwrap().unwrap();
        assert_eq!((found.first.0, found.head.0), (1, 2), "{part}");
        // It can be pruned itself.
        let lease = claim(&store.inner, "x").unwrap();
        append(&store.inner, &lease, 2, b"snapshot", Phase::Ended, true).unwrap();
        store.inner.remove(&lease, Remove::Below(Seq(9))).unwrap();
        drop(store);
        let found = page(&real(&to).inner, "x", ReadFrom::Snapshot).unwrap().unwrap();
        assert_eq!((found.first.0, found.head.0), (3, 3));
        let files = std::fs::read_dir(copied.parent().unwrap()).unwrap();
        let left = files.map(|file| file.unwrap().path());
        assert_eq!(left.filter(|path| path.extension().is_some_and(|it| it == "next")).count(), 0);
        std::fs::remove_file(copied.with_extension("checkpoint")).unwrap();
    }
    // The store itself continues there.
    let next = log.with_file_name(&name);
    std::fs::rename(&log, next).unwrap();
    std::fs::write(&log, &text).unwrap();
    let found = page(&real(&place).inner, "x", ReadFrom::Snapshot).unwrap().unwrap();
    assert_eq!((found.first.0, found.head.0), (2, 2));
}

#[test]
fn copies_of_a_store_in_use_open() {
    const SESSIONS: usize = 12;
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("store");
    let store = real(&place);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stop = Stop(&done);
        for session in 0..SESSIONS {
            let (store, done) = (real(&place), &done);
            scope.spawn(move || {
                let name = session.to_string();
                let mut after = 0;
                while !done.load(std::sync::atomic::Ordering::SeqCst) {
                    let lease = claim(&store.inner, &name).unwrap();
                    for _ in 0..3 {
                        let bytes = format!("snapshot {after}");
                        let phase = if after % 3 == 2 { Phase::Ended } else { Phase::Running };
                        append(&store.inner, &lease, after, bytes.as_bytes(), phase, true).unwrap();
                        after += 1;
                    }
                    if session % 3 == 0 {
                        store.inner.remove(&lease, Remove::Below(Seq(after - 1))).unwrap();
                    }
                    if session % 6 == 1 {
                        store.inner.remove(&lease, Remove::All).unwrap();
                        after = 0;
                    } else {
                        store.inner.release(&lease, InboxSeq(0)).unwrap();
                    }
                }
            });
        }
        for round in 0..12 {
            let to = dir.path().join(format!("copy {round}"));
            let copied = std::process::Command::new("cp").arg("-r").arg(&place).arg(&to).output();
            // What is deleted meanwhile is not there to be copied, of which it warns.
            copied.unwrap();
            let copied = real(&to);
            assert!(copied.inner.place.copied || round == 0);
            for session in 0..SESSIONS {
                let name = session.to_string();
                let found = page(&copied.inner, &name, ReadFrom::SnapshotBelow(Seq(u64::MAX)));
                let Some(found) = found.unwrap_or_else(|error| panic!("{round} {name}: {error}"))
                else {
                    continue;
                };
                let last = found.entries.last().unwrap();
                assert_eq!(last.bytes, format!("snapshot {}", last.seq.0 - 1).as_bytes());
            }
        }
        drop(stop);
    });
    drop(store);
}
