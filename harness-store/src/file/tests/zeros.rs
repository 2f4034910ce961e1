//! Zeros, which a loss of power leaves where the system had not written yet: they take no memory.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use harness::Seq;
use harness::store::{InboxSeq, Phase, ReadFrom};

use super::recording::Recording;
use super::{append, claim, id, message, open, page};
use crate::file::disk::RealDisk;

const ZEROS: u64 = 8 * 1024 * 1024;
const ALL: ReadFrom = ReadFrom::Seq(Seq(1));

fn lengthen(path: &Path) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(file.metadata().unwrap().len() + ZEROS).unwrap();
}

#[test]
fn a_long_tail_of_zeros_takes_no_memory() {
    // After a whole record, after a part of one, and after all of one but its last byte.
    for missing in [0, 20, 1] {
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(Recording::default());
        let store = open(&disk, dir.path());
        let lease = claim(&store.inner, "x").unwrap();
        append(&store.inner, &lease, 0, b"1", Phase::Running, true).unwrap();
        append(&store.inner, &lease, 1, b"the second entry", Phase::Running, true).unwrap();
        drop(store);
        let log = open(&disk, dir.path()).inner.log_path(&id("x"));
        let len = std::fs::metadata(&log).unwrap().len();
        OpenOptions::new().write(true).open(&log).unwrap().set_len(len - missing).unwrap();
        lengthen(&log);

        let store = open(&disk, dir.path());
        let head = page(&store.inner, "x", ALL).unwrap().unwrap().head.0;
        assert_eq!(head, if missing == 0 { 2 } else { 1 });
        let lease = claim(&store.inner, "x").unwrap();
        append(&store.inner, &lease, head, b"next", Phase::Running, true).unwrap();
        store.inner.send(&id("x"), &[message("k")]).unwrap();
        store.inner.release(&lease, InboxSeq(1)).unwrap();
        for store in [store, open(&disk, dir.path())] {
            let found = page(&store.inner, "x", ALL).unwrap().unwrap();
            assert_eq!((found.head.0, found.messages.len()), (head + 1, 1));
            assert_eq!(found.entries.last().unwrap().bytes, b"next");
            let aside = found.set_aside;
            assert!((ZEROS..ZEROS + 200).contains(&aside), "{aside}");
        }
        let largest = disk.largest.load(Ordering::SeqCst);
        assert!(largest <= 512 * 1024, "{largest} bytes at once");
    }
}

#[test]
fn long_zeros_read_as_short_ones_do() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&Arc::new(RealDisk), dir.path());
    let lease = claim(&store.inner, "x").unwrap();
    append(&store.inner, &lease, 0, b"1", Phase::Running, true).unwrap();
    drop(store);
    let log = open(&Arc::new(RealDisk), dir.path()).inner.log_path(&id("x"));
    let sound = std::fs::read(&log).unwrap();
    let look = |zeros: usize, before: usize, after: &[u8]| {
        let mut bytes = sound[..sound.len() - before].to_vec();
        bytes.resize(bytes.len() + zeros, 0);
        bytes.extend(after);
        std::fs::write(&log, &bytes).unwrap();
        let store = open(&Arc::new(RealDisk), dir.path());
        let page = page(&store.inner, "x", ALL);
        page.map(|page| page.map(|page| (page.entries, page.messages, page.set_aside > 0)))
            .map_err(|error| error.to_string().split(" byte ").next().unwrap().to_owned())
    };
    let claim = b"\n6f2a5d2eC9 6f7bd0d97e454f81b91681fbfc210dd9 0 0\n";
    let mut claim = claim.to_vec();
    let sum = format!("{:08x}", crc32fast::hash(&claim[9..claim.len() - 1]));
    claim[1..9].copy_from_slice(sum.as_bytes());
    let one = b"\n";
    for before in [0, 1, 20] {
        for after in [&b""[..], one, &claim, &claim[1..], &claim[..30], b"\n\n", b"text"] {
            let short = look(1_000, before, after);
            for zeros in [256 * 1024, 300_000] {
                assert_eq!(look(zeros, before, after), short, "{before} {zeros} {after:?}");
            }
        }
    }
}

#[test]
fn a_checkpoint_of_zeros_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Recording::default());
    let store = open(&disk, dir.path());
    let lease = claim(&store.inner, "x").unwrap();
    append(&store.inner, &lease, 0, b"1", Phase::Ended, true).unwrap();
    drop(store);
    let store = open(&disk, dir.path());
    let log = store.inner.log_path(&id("x"));
    for kind in ["checkpoint", "lease", "start"] {
        std::fs::write(log.with_extension(kind), "").unwrap();
        lengthen(&log.with_extension(kind));
    }
    assert_eq!(page(&store.inner, "x", ALL).unwrap().unwrap().head.0, 1);
    claim(&store.inner, "x").unwrap();
    let largest = disk.largest.load(Ordering::SeqCst);
    assert!(largest <= 512 * 1024, "{largest} bytes at once");
}
