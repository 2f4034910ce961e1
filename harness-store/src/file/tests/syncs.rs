//! How often what is written is synced: what is durable is not made so again by the next process.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use harness::Seq;
use harness::store::{Phase, ReadFrom, Remove};

use super::recording::{Op, Recording};
use super::{append, claim, id, message, open, page};
use crate::file::FileStore;
use crate::file::FileStoreOptions;
use crate::file::disk::Disk;
use crate::local::Sync;

/// Which directories were synced since some place on the tape, and how often files were.
fn syncs(disk: &Recording, from: usize) -> (Vec<String>, usize) {
    let tape = disk.tape.lock().unwrap();
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let (mut dirs, mut files) = (Vec::new(), 0);
    for op in &tape.ops[from..] {
        match op {
            Op::SyncDir(path) => dirs.push(name(path)),
            Op::Sync(_) => files += 1,
            _ => {}
        }
    }
    (dirs, files)
}

fn so_far(disk: &Recording) -> usize {
    disk.tape.lock().unwrap().ops.len()
}

fn unsynced(disk: &Arc<Recording>, dir: &Path) -> FileStore {
    let options = FileStoreOptions::new().sync(Sync::Never);
    options.open_on(Arc::clone(disk) as Arc<dyn Disk>, dir).unwrap()
}

#[test]
fn names_are_synced_once() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("a/store");
    let disk = Arc::new(Recording::default());
    let top = parent.path().file_name().unwrap().to_str().unwrap().to_owned();
    let store = open(&disk, &dir);
    // Every directory that was made, and those that hold them.
    assert_eq!(syncs(&disk, 0), (vec![top, "a".into(), "store".into()], 0));
    let lease = claim(&store.inner, "x").unwrap();
    let begun = so_far(&disk);
    append(&store.inner, &lease, 0, b"1", Phase::Interrupted, true).unwrap();
    let shard = store.inner.log_path(&id("x"));
    let shard = shard.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    // The log, and not the note that the session rests.
    assert_eq!(syncs(&disk, begun), (vec!["sessions".into(), shard], 1));
    drop((store, lease));

    // Another handle has the word of the note for it.
    let begun = so_far(&disk);
    let store = open(&disk, &dir);
    store.inner.send(&id("x"), &[message("k")]).unwrap();
    let lease = claim(&store.inner, "x").unwrap();
    append(&store.inner, &lease, 1, b"2", Phase::Running, true).unwrap();
    append(&store.inner, &lease, 2, b"3", Phase::Ended, true).unwrap();
    assert_eq!(syncs(&disk, begun), (vec![], 3));
    drop((store, lease));

    // Without the note, a batch behind one that was durable says so.
    std::fs::remove_file(open(&disk, &dir).inner.log_path(&id("x")).with_extension("checkpoint"))
        .unwrap();
    let begun = so_far(&disk);
    let store = open(&disk, &dir);
    store.inner.send(&id("x"), &[message("l")]).unwrap();
    assert_eq!(syncs(&disk, begun), (vec![], 1));
}

#[test]
fn a_part_of_the_directory_is_synced_by_the_first_that_makes_it_durable() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("store");
    let disk = Arc::new(Recording::default());
    let store = open(&disk, &dir);
    // Two sessions in one part.
    let mut parts: BTreeMap<_, String> = BTreeMap::new();
    let (first, second) = (0..)
        .map(|number| format!("session {number}"))
        .find_map(|name| {
            let part = store.inner.log_path(&id(&name)).parent().unwrap().to_owned();
            parts.insert(part, name.clone()).map(|first| (first, name))
        })
        .unwrap();
    let mut found = Vec::new();
    for session in [&first, &second] {
        let lease = claim(&store.inner, session).unwrap();
        let begun = so_far(&disk);
        append(&store.inner, &lease, 0, b"1", Phase::Running, true).unwrap();
        found.push(syncs(&disk, begun).0.len());
    }
    assert_eq!(found, [2, 1]);
}

#[test]
fn who_never_syncs_says_nothing_of_what_is_durable() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("store");
    let disk = Arc::new(Recording::default());
    let store = unsynced(&disk, &dir);
    let lease = claim(&store.inner, "x").unwrap();
    append(&store.inner, &lease, 0, b"snapshot", Phase::Running, true).unwrap();
    append(&store.inner, &lease, 1, b"snapshot", Phase::Running, true).unwrap();
    store.inner.remove(&lease, Remove::Below(Seq(2))).unwrap();
    append(&store.inner, &lease, 2, b"3", Phase::Ended, true).unwrap();
    append(&store.inner, &lease, 3, b"4", Phase::Ended, true).unwrap();
    assert_eq!(syncs(&disk, 0), (vec![], 0));
    drop(store);
    let store = open(&disk, &dir);
    store.inner.send(&id("x"), &[message("k")]).unwrap();
    let (dirs, files) = syncs(&disk, 0);
    assert_eq!((dirs.len(), files), (4, 1), "{dirs:?}");
}

#[test]
fn a_log_that_was_renamed_by_a_process_that_ended_is_named_again() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("store");
    let disk = Arc::new(Recording::default());
    let store = open(&disk, &dir);
    let lease = claim(&store.inner, "x").unwrap();
    append(&store.inner, &lease, 0, b"1", Phase::Running, true).unwrap();
    append(&store.inner, &lease, 1, b"snapshot", Phase::Running, true).unwrap();
    append(&store.inner, &lease, 2, b"3", Phase::Ended, true).unwrap();
    store.inner.remove(&lease, Remove::Below(Seq(u64::MAX))).unwrap();
    drop(store);
    let begun = so_far(&disk);
    let store = open(&disk, &dir);
    assert_eq!(page(&store.inner, "x", ReadFrom::Snapshot).unwrap().unwrap().first.0, 2);
    // The note is of the file before, and so is what the batches say that were taken over.
    store.inner.send(&id("x"), &[message("k")]).unwrap();
    let (dirs, files) = syncs(&disk, begun);
    assert_eq!((dirs.len(), files), (1, 1), "{dirs:?}");
}
