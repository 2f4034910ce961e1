//! Where a long log is started from: how much of it is read, and that nothing else is seen.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use harness::Seq;
use harness::store::{InboxSeq, Phase, ReadFrom, Remove, Sent, StoreError};

use super::recording::Recording;
use super::{append, claim, id, message, open, page};
use crate::file::FileStoreOptions;
use crate::file::disk::{Disk, RealDisk};
use crate::file::lease::read_small;
use crate::local::Sync;

const STEPS: u64 = 120;
const SNAPSHOT: u64 = 100;

/// A session of long entries, with messages, a snapshot after which it continues, and the file
/// beside it that says so.
fn session(disk: &Arc<Recording>, dir: &Path, sync: Sync, last: Phase) -> PathBuf {
    let options = FileStoreOptions::new().sync(sync);
    let store = options.open_on(Arc::clone(disk) as Arc<dyn Disk>, dir).unwrap();
    let inner = &*store.inner;
    for (first, upto) in [(0, 50), (50, STEPS)] {
        let lease = claim(inner, "x").unwrap();
        for after in first..upto {
            let kind = if after == SNAPSHOT { "snapshot" } else { "entry" };
            let bytes = format!("{kind} {after} {}", "x".repeat(2_000));
            let phase = if after + 1 == STEPS { last } else { Phase::Running };
            append(inner, &lease, after, bytes.as_bytes(), phase, true).unwrap();
            if after == 10 || after == 110 {
                inner.send(&id("x"), &[message(&format!("k{after}"))]).unwrap();
            }
        }
        inner.release(&lease, InboxSeq(0)).unwrap();
    }
    inner.log_path(&id("x"))
}

/// A page as it is reported, and how many bytes of files were read for it by a handle that is new.
fn look(disk: &Arc<Recording>, dir: &Path, from: ReadFrom) -> (Result<String, StoreError>, usize) {
    let store = open(disk, dir);
    let before = disk.read.load(Ordering::SeqCst);
    let found = page(&store.inner, "x", from).map(|page| format!("{page:?}"));
    (found, disk.read.load(Ordering::SeqCst) - before)
}

const PLACES: [ReadFrom; 7] = [
    ReadFrom::Snapshot,
    ReadFrom::Seq(Seq(1)),
    ReadFrom::Seq(Seq(SNAPSHOT)),
    ReadFrom::Seq(Seq(SNAPSHOT + 1)),
    ReadFrom::SnapshotBelow(Seq(SNAPSHOT)),
    ReadFrom::SnapshotBelow(Seq(SNAPSHOT + 1)),
    ReadFrom::SnapshotBelow(Seq(u64::MAX)),
];

#[test]
fn a_new_reader_starts_at_the_last_snapshot_and_sees_what_others_see() {
    for sync in [Sync::Flush, Sync::Never] {
        for last in [Phase::Ended, Phase::Running] {
            let dir = tempfile::tempdir().unwrap();
            let disk = Arc::new(Recording::default());
            let log = session(&disk, dir.path(), sync, last);
            let start = log.with_extension("start");
            let word = std::fs::read(&start).unwrap();
            let size = usize::try_from(std::fs::metadata(&log).unwrap().len()).unwrap();
            for from in PLACES {
                let (found, read) = look(&disk, dir.path(), from);
                std::fs::remove_file(&start).unwrap();
                let (whole, all) = look(&disk, dir.path(), from);
                std::fs::write(&start, &word).unwrap();
                assert_eq!(found.unwrap(), whole.unwrap(), "{from:?}");
                assert!(all > size, "{all}");
                if from == ReadFrom::Snapshot {
                    assert!(read < size / 2, "{read} of {size}");
                }
            }
        }
    }
}

#[test]
fn a_reader_that_started_at_a_snapshot_continues_as_others_do() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Recording::default());
    session(&disk, dir.path(), Sync::Flush, Phase::Interrupted);
    let store = open(&disk, dir.path());
    let inner = &*store.inner;
    // A message from before the snapshot is still the first under its key.
    let posted = inner.send(&id("x"), &[message("k10")]).unwrap();
    assert!(matches!(posted, Sent::Accepted(seq) if seq.0 == 2), "{posted:?}");
    let mut other = message("k10");
    other.digest = "other".into();
    assert!(matches!(inner.send(&id("x"), &[other]).unwrap(), Sent::Taken { .. }));
    let lease = claim(inner, "x").unwrap();
    // Each of the two claims before it was released.
    assert_eq!(lease.fence.0, 5);
    append(inner, &lease, STEPS, b"next", Phase::Running, true).unwrap();
    // What is sent again is found, and what is old is refused.
    let again = append(inner, &lease, STEPS, b"next", Phase::Running, true).unwrap();
    assert_eq!(again.head.0, STEPS + 1);
    let old = append(inner, &lease, 5, b"old", Phase::Running, true);
    assert!(matches!(old, Err(StoreError::Conflict { .. })), "{old:?}");
    drop(store);
    let store = open(&disk, dir.path());
    let inner = &*store.inner;
    let entries = page(inner, "x", ReadFrom::Seq(Seq(1))).unwrap().unwrap().entries;
    assert_eq!(entries.len() as u64, STEPS + 1);
    assert_eq!(entries.last().unwrap().bytes, b"next");
}

#[test]
fn a_log_that_was_started_in_the_middle_can_be_pruned() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Recording::default());
    session(&disk, dir.path(), Sync::Flush, Phase::Ended);
    let store = open(&disk, dir.path());
    let inner = &*store.inner;
    let lease = claim(inner, "x").unwrap();
    inner.remove(&lease, Remove::Below(Seq(u64::MAX))).unwrap();
    for store in [&store, &open(&disk, dir.path())] {
        let found = page(&store.inner, "x", ReadFrom::Snapshot).unwrap().unwrap();
        assert_eq!((found.first.0, found.head.0), (SNAPSHOT + 1, STEPS));
        assert_eq!(found.messages.len(), 2);
        let pruned = page(&store.inner, "x", ReadFrom::Seq(Seq(1)));
        assert!(matches!(pruned, Err(StoreError::Pruned { .. })), "{pruned:?}");
    }
    append(inner, &lease, STEPS, b"next", Phase::Ended, true).unwrap();
}

#[test]
fn word_that_does_not_fit_is_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Recording::default());
    let log = session(&disk, dir.path(), Sync::Flush, Phase::Ended);
    let start = log.with_extension("start");
    let size = usize::try_from(std::fs::metadata(&log).unwrap().len()).unwrap();
    let sound = std::fs::read_to_string(&start).unwrap();
    let (whole, _) = look(&disk, dir.path(), ReadFrom::Snapshot);
    let whole = whole.unwrap();
    let resummed = |from: &str, to: &str| {
        let json = sound[9..].trim_end().replacen(from, to, 1);
        assert_ne!(json, sound[9..].trim_end(), "{from}");
        format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes()))
    };
    let epoch = sound.split("\"epoch\":\"").nth(1).unwrap().split('"').next().unwrap();
    let offset = sound.split("\"offset\":").nth(1).unwrap().split(',').next().unwrap();
    let words = [
        sound[..sound.len() / 2].to_owned(),
        sound.replacen("\"head\":100", "\"head\":101", 1),
        resummed(epoch, "00000000000000000000000000000000"),
        resummed("\"rewritten\":0", "\"rewritten\":1"),
        resummed(&format!("\"offset\":{offset}"), "\"offset\":70000"),
        resummed(&format!("\"offset\":{offset}"), "\"offset\":18446744073709551615"),
        resummed("\"sum\":", "\"sum\":1"),
        resummed("\"token\":\"", "\"token\":\"no"),
        resummed("]}", "],\"boot\":\"another\"}"),
    ];
    for word in words {
        std::fs::write(&start, &word).unwrap();
        let (found, read) = look(&disk, dir.path(), ReadFrom::Snapshot);
        assert_eq!(found.unwrap(), whole, "{word}");
        assert!(read > size, "{read}: {word}");
    }
}

#[test]
fn damage_is_reported_to_every_reader() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Recording::default());
    let log = session(&disk, dir.path(), Sync::Flush, Phase::Ended);
    let sound = std::fs::read(&log).unwrap();
    let text = String::from_utf8(sound.clone()).unwrap();
    let snapshot = text[..text.find("snapshot 100").unwrap()].rfind("\n\n").unwrap() + 1;
    // What a release adds is not acknowledged.
    let acknowledged = text[..text.len() - 2].rfind("\n\n").unwrap() + 1;
    let corrupt = |from| {
        let (found, _) = look(&disk, dir.path(), from);
        matches!(found, Err(StoreError::Corrupt { .. }))
    };
    // From the snapshot on, to everybody: here a bit of one byte in some.
    for place in (snapshot..sound.len()).step_by(61) {
        let mut bytes = sound.clone();
        bytes[place] ^= 1 << (place % 8);
        std::fs::write(&log, &bytes).unwrap();
        assert!(corrupt(ReadFrom::Snapshot), "byte {place}");
        std::fs::write(&log, &sound[..place]).unwrap();
        assert_eq!(corrupt(ReadFrom::Snapshot), place < acknowledged, "cut to {place}");
    }
    // Before it, to those who read what is there; and in what it begins with, to everybody.
    for place in (0..snapshot).step_by(997) {
        let mut bytes = sound.clone();
        bytes[place] ^= 1 << (place % 8);
        std::fs::write(&log, &bytes).unwrap();
        assert!(corrupt(ReadFrom::Seq(Seq(1))), "byte {place}");
        assert_eq!(corrupt(ReadFrom::Snapshot), place < 150, "byte {place}");
        std::fs::write(&log, &sound[..place]).unwrap();
        assert!(corrupt(ReadFrom::Snapshot), "cut to {place}");
    }
}

#[test]
fn where_to_start_is_recorded_once_it_is_durable() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Recording::default());
    let store = open(&disk, dir.path());
    let inner = &*store.inner;
    let start = inner.log_path(&id("x")).with_extension("start");
    let lease = claim(inner, "x").unwrap();
    let write = |after: u64, kind: &str, flush: bool| {
        let bytes = format!("{kind} {after} {}", "x".repeat(50_000));
        append(inner, &lease, after, bytes.as_bytes(), Phase::Running, flush).unwrap();
        let word: Option<crate::file::start::Start> = read_small(&RealDisk, &start).unwrap();
        word.map(|word| word.head)
    };
    assert_eq!(write(0, "entry", true), None);
    assert_eq!(write(1, "entry", true), None);
    assert_eq!(write(2, "snapshot", false), None, "its snapshot can still be lost");
    assert_eq!(write(3, "entry", false), None);
    assert_eq!(write(4, "entry", true), Some(2));
    assert_eq!(write(5, "snapshot", true), Some(5));
    // One that comes too close changes nothing.
    assert_eq!(write(6, "snapshot", true), Some(5));
}
