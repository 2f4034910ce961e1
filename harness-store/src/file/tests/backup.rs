//! Backups of a store in use.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use harness::Seq;
use harness::store::{Filter, InboxSeq, Phase, ReadFrom, Remove, StoreError};

use super::recording::{Op, Recording};
use super::{append, claim, id, message, open, page};
use crate::file::FileStore;
use crate::file::backup::Backup;
use crate::file::disk::RealDisk;

const ALL: ReadFrom = ReadFrom::Seq(Seq(1));

fn real(dir: &Path) -> FileStore {
    open(&Arc::new(RealDisk), dir)
}

/// Outside of a runtime a store waits for the disk in place.
fn back_up(store: &FileStore, to: &Path) -> Result<Backup, StoreError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.backup(to))
}

fn refused(done: Result<Backup, StoreError>, why: &str) {
    match done {
        Err(StoreError::Unsuitable(said)) => assert!(said.contains(why), "{said}"),
        other => panic!("{why}: {other:?}"),
    }
}

/// Ends the threads of a test, also of one that fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Appends until it is stopped, and counts what is acknowledged. Every third session is pruned.
fn write(store: &FileStore, session: usize, done: &AtomicBool, acknowledged: &AtomicU64) {
    let (name, mut after) = (session.to_string(), 0);
    while !done.load(Ordering::SeqCst) {
        let lease = claim(&store.inner, &name).unwrap();
        for step in 0..4 {
            let bytes = format!("snapshot {after}");
            let phase = if step == 3 { Phase::Ended } else { Phase::Running };
            append(&store.inner, &lease, after, bytes.as_bytes(), phase, step > 1).unwrap();
            store.inner.send(&id(&name), &[message(&after.to_string())]).unwrap();
            after += 1;
            acknowledged.store(after, Ordering::SeqCst);
        }
        if session.is_multiple_of(3) {
            store.inner.remove(&lease, Remove::Below(Seq(after - 1))).unwrap();
        }
        if session.is_multiple_of(2) {
            store.inner.release(&lease, InboxSeq(0)).unwrap();
        } else {
            store.inner.renew(&lease, super::LONG).unwrap();
            store.inner.release(&lease, InboxSeq(0)).unwrap();
        }
    }
}

#[test]
fn a_backup_of_a_store_in_use_has_what_was_acknowledged() {
    const SESSIONS: usize = 6;
    const ROUNDS: usize = 8;
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("store");
    let to = |round: usize| dir.path().join(format!("backup {round}"));
    let store = real(&place);
    let done = AtomicBool::new(false);
    let counts: Vec<AtomicU64> = (0..SESSIONS).map(|_| AtomicU64::new(0)).collect();
    let mut known = Vec::new();
    std::thread::scope(|scope| {
        let stop = Stop(&done);
        for (session, count) in counts.iter().enumerate() {
            let (store, done) = (real(&place), &done);
            scope.spawn(move || write(&store, session, done, count));
        }
        while counts.iter().any(|count| count.load(Ordering::SeqCst) < 10) {
            std::thread::yield_now();
        }
        for round in 0..ROUNDS {
            let before: Vec<u64> = counts.iter().map(|it| it.load(Ordering::SeqCst)).collect();
            let copied = back_up(&store, &to(round)).unwrap();
            assert_eq!((copied.sessions, copied.unreadable.len()), (SESSIONS as u64, 0));
            known.push(before);
        }
        drop(stop);
    });
    for (round, before) in known.iter().enumerate() {
        let backup = real(&to(round));
        let rows = backup.inner.list(&Filter::sessions(), None, 100).unwrap().rows;
        assert_eq!(rows.len(), SESSIONS);
        for (session, before) in before.iter().enumerate() {
            let name = session.to_string();
            let found = page(&backup.inner, &name, ReadFrom::SnapshotBelow(Seq(u64::MAX)));
            let found = found.unwrap().unwrap();
            assert!(found.head.0 >= *before, "{round} {name}: {} of {before}", found.head);
            assert!(found.messages.len() as u64 >= *before && found.holder.is_none());
            assert_eq!((rows[session].head, found.set_aside), (found.head, 0));
            for entry in
                page(&backup.inner, &name, ReadFrom::Seq(found.first)).unwrap().unwrap().entries
            {
                assert_eq!(entry.bytes, format!("snapshot {}", entry.seq.0 - 1).as_bytes());
            }
            if !session.is_multiple_of(3) {
                let copy = std::fs::read(backup.inner.log_path(&id(&name))).unwrap();
                let log = std::fs::read(store.inner.log_path(&id(&name))).unwrap();
                assert!(log.starts_with(&copy) && copy.ends_with(b"\n"), "{round} {name}");
            }
            // It can be continued at once, and from then on protects what it has.
            let lease = claim(&backup.inner, &name).unwrap();
            append(&backup.inner, &lease, found.head.0, b"snapshot", Phase::Ended, true).unwrap();
        }
    }
}

#[test]
fn a_backup_protects_what_it_has() {
    let dir = tempfile::tempdir().unwrap();
    let (place, to) = (dir.path().join("store"), dir.path().join("deep/er/backup"));
    let store = real(&place);
    let lease = claim(&store.inner, "x").unwrap();
    // A session that has not settled, and that another store holds.
    append(&store.inner, &lease, 0, b"1", Phase::Running, false).unwrap();
    let other = real(&place);
    assert_eq!(back_up(&other, &to).unwrap().sessions, 1);
    let backup = real(&to);
    let log = backup.inner.log_path(&id("x"));
    let len = std::fs::metadata(&log).unwrap().len();
    std::fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(len - 9).unwrap();
    let found = page(&backup.inner, "x", ALL);
    assert!(matches!(found, Err(StoreError::Corrupt { .. })), "{found:?}");
}

#[test]
fn a_long_log_is_copied_in_parts() {
    let dir = tempfile::tempdir().unwrap();
    let (place, to) = (dir.path().join("store"), dir.path().join("backup"));
    let disk = Arc::new(Recording::default());
    let store = open(&disk, &place);
    let lease = claim(&store.inner, "x").unwrap();
    for after in 0..40 {
        let bytes =
            format!("{} {}", if after == 30 { "snapshot" } else { "entry" }, "x".repeat(100_000));
        append(&store.inner, &lease, after, bytes.as_bytes(), Phase::Running, true).unwrap();
    }
    disk.largest.store(0, Ordering::SeqCst);
    let copied = back_up(&store, &to).unwrap();
    let log = std::fs::metadata(store.inner.log_path(&id("x"))).unwrap();
    assert_eq!(copied.bytes, log.len());
    assert!(disk.largest.load(Ordering::SeqCst) <= 512 * 1024);
    // Its reader starts where one of the store does.
    let backup = real(&to);
    assert!(backup.inner.log_path(&id("x")).with_extension("start").exists());
    assert_eq!(page(&backup.inner, "x", ALL).unwrap().unwrap().entries.len(), 40);
    // Damage before the snapshot is found, too.
    drop(store);
    let log = open(&disk, &place).inner.log_path(&id("x"));
    let mut bytes = std::fs::read(&log).unwrap();
    bytes[200_000] ^= 1;
    std::fs::write(&log, bytes).unwrap();
    let copied = back_up(&real(&place), &dir.path().join("damaged")).unwrap();
    assert_eq!((copied.sessions, copied.unreadable.len()), (0, 1));
    assert!(matches!(copied.unreadable[0], StoreError::Corrupt { .. }));
}

#[test]
fn a_session_that_cannot_be_read_keeps_no_other_from_the_backup() {
    let dir = tempfile::tempdir().unwrap();
    let (place, to) = (dir.path().join("store"), dir.path().join("backup"));
    let store = real(&place);
    for name in ["bad", "good", "newer"] {
        let lease = claim(&store.inner, name).unwrap();
        append(&store.inner, &lease, 0, b"1", Phase::Ended, true).unwrap();
    }
    claim(&store.inner, "begun").unwrap();
    let lease = claim(&store.inner, "removed").unwrap();
    append(&store.inner, &lease, 0, b"1", Phase::Ended, true).unwrap();
    store.inner.remove(&lease, Remove::All).unwrap();
    let log = store.inner.log_path(&id("bad"));
    let bytes = std::fs::read(&log).unwrap();
    std::fs::write(&log, &bytes[..bytes.len() / 2]).unwrap();
    std::fs::write(store.inner.log_path(&id("newer")), "what a later version writes").unwrap();
    let copied = back_up(&real(&place), &to).unwrap();
    assert_eq!((copied.sessions, copied.unreadable.len()), (1, 2), "{copied:?}");
    let rows = real(&to).inner.list(&Filter::sessions(), None, 9).unwrap().rows;
    assert_eq!(rows.iter().map(|row| row.session.as_str()).collect::<Vec<_>>(), ["good"]);
}

#[test]
fn a_backup_needs_a_directory_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let store = real(&dir.path().join("store"));
    let lease = claim(&store.inner, "x").unwrap();
    append(&store.inner, &lease, 0, b"1", Phase::Ended, true).unwrap();
    let full = dir.path().join("full");
    std::fs::create_dir(&full).unwrap();
    std::fs::write(full.join("precious"), "precious").unwrap();
    refused(back_up(&store, &full), "it is not empty");
    assert_eq!(std::fs::read_dir(&full).unwrap().count(), 1);
    refused(back_up(&store, &dir.path().join("store")), "it is inside the store");
    refused(back_up(&store, &dir.path().join("store/sessions/aa/deep")), "it is inside the store");
    let empty = dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    back_up(&store, &empty).map(drop).unwrap();
    assert_eq!(real(&empty).inner.list(&Filter::sessions(), None, 9).unwrap().rows.len(), 1);
}

#[test]
fn a_backup_that_did_not_finish_is_no_store() {
    let dir = tempfile::tempdir().unwrap();
    let (place, to) = (dir.path().join("store"), dir.path().join("backup"));
    let disk = Arc::new(Recording::default());
    let store = open(&disk, &place);
    let lease = claim(&store.inner, "x").unwrap();
    append(&store.inner, &lease, 0, b"1", Phase::Ended, true).unwrap();
    disk.faults.full.store(1, Ordering::SeqCst);
    let full = back_up(&store, &to);
    assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
    assert_eq!(std::fs::read_dir(&to).unwrap().count(), 0);
    // One whose process was killed leaves what it had.
    std::fs::create_dir(to.join("unfinished")).unwrap();
    let options = crate::file::FileStoreOptions::new();
    match options.open_on(Arc::new(RealDisk), &to) {
        Err(StoreError::Unsuitable(said)) => assert!(said.contains("not finished"), "{said}"),
        other => panic!("{other:?}"),
    }
    refused(back_up(&store, &to), "it is not empty");
}

#[test]
fn a_backup_is_durable_when_it_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let (place, to) = (dir.path().join("store"), dir.path().join("new/backup"));
    let disk = Arc::new(Recording::default());
    let store = open(&disk, &place);
    let lease = claim(&store.inner, "x").unwrap();
    append(&store.inner, &lease, 0, b"1", Phase::Running, false).unwrap();
    let begun = disk.tape.lock().unwrap().ops.len();
    back_up(&store, &to).map(drop).unwrap();
    let tape = disk.tape.lock().unwrap();
    let ops = &tape.ops[begun..];
    let at = |wanted: &dyn Fn(&Op) -> bool| ops.iter().position(wanted).unwrap();
    let last = |wanted: &dyn Fn(&Op) -> bool| ops.iter().rposition(wanted).unwrap();
    // What it has is durable in the store itself before it is copied.
    let renamed = at(&|op| matches!(op, Op::Rename(..)));
    let is_log = |path: &Path| path.extension().is_some_and(|kind| kind == "log");
    let copied = at(&|op| matches!(op, Op::Create(path, _) if is_log(path)));
    assert!(at(&|op| matches!(op, Op::Sync(_))) < copied);
    let mut files = 0;
    for op in ops {
        match op {
            Op::Create(path, number)
                if path.extension().is_some_and(|it| it == "log" || it == "checkpoint") =>
            {
                let written = last(&|op| matches!(op, Op::Write(file, ..) if file == number));
                let synced = last(&|op| matches!(op, Op::Sync(file) if file == number));
                let shard = path.parent().unwrap();
                let named = at(&|op| matches!(op, Op::SyncDir(dir) if dir == shard));
                assert!(written < synced && synced < named && named < renamed);
                files += 1;
            }
            Op::MakeDir(path) if *path != to => {
                let parent = path.parent().unwrap();
                assert!(
                    ops.iter().any(|op| matches!(op, Op::SyncDir(dir) if dir == parent)),
                    "{path:?}"
                );
            }
            _ => {}
        }
    }
    assert_eq!(files, 2);
    for parent in [&to, &dir.path().join("new"), dir.path()] {
        assert!(
            last(&|op| matches!(op, Op::SyncDir(dir) if dir == parent)) > renamed,
            "{parent:?}"
        );
    }
}
