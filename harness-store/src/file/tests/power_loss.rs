//! What a loss of power may leave of what was written: for every moment, everything that was
//! synced, and of all else any part: writes in full, in part or not at all, names or none.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::Seq;
use harness::store::{Phase, ReadFrom, Remove, StoreError};
use proptest::prelude::Rng as _;
use proptest::test_runner::{RngAlgorithm, TestRng};

use super::recording::{Op, Recording, Restarted};
use super::{append, claim, id, message, open, page};
use crate::file::place::PLACE;
use crate::file::{FileStore, FileStoreOptions};
use crate::local::Sync;

/// What a caller was promised, and when.
#[derive(Clone, Debug)]
struct Promise {
    /// How many operations had reached the disk.
    ops: usize,
    session: &'static str,
    /// `None` once it is removed.
    kept: Option<Kept>,
    /// A removal that is under way: from then on nothing is promised.
    leaving: bool,
}

#[derive(Clone, Debug, Default)]
struct Kept {
    head: u64,
    messages: usize,
    first: u64,
}

struct World {
    disk: Arc<Recording>,
    promises: Vec<Promise>,
    /// Everything that was ever appended, acknowledged or not.
    written: HashMap<&'static str, Vec<Vec<u8>>>,
}

impl World {
    fn promise(&mut self, session: &'static str, kept: Option<Kept>, leaving: bool) {
        let ops = self.disk.tape.lock().unwrap().ops.len();
        self.promises.push(Promise { ops, session, kept, leaving });
    }
}

/// Two sessions: one is pruned, goes through several hands and comes to rest; one is removed.
fn work(dir: &Path) -> World {
    let disk = Arc::new(Recording::default());
    let mut world = World { disk: Arc::clone(&disk), promises: vec![], written: HashMap::new() };
    let mut kept = Kept { first: 1, ..Kept::default() };
    for round in 0..3_u64 {
        let store = open(&disk, dir);
        let inner = &*store.inner;
        let lease = claim(inner, "x").unwrap();
        for step in 0..6 {
            let after = page(inner, "x", ReadFrom::Snapshot).unwrap().map_or(0, |page| page.head.0);
            let bytes = format!("{}entry {after}", if step == 3 { "snapshot " } else { "" });
            let rests = step == 5 && round != 1;
            let phase = if rests { Phase::Ended } else { Phase::Running };
            let flush = rests || after == 0 || step == 1;
            world.written.entry("x").or_default().push(bytes.clone().into_bytes());
            append(inner, &lease, after, bytes.as_bytes(), phase, flush).unwrap();
            if flush {
                kept.head = after + 1;
                world.promise("x", Some(kept.clone()), false);
            }
            if step % 2 == 0 {
                inner.send(&id("x"), &[message(&format!("{round}-{step}"))]).unwrap();
                kept.messages += 1;
                // A message is durable with everything that stands before it.
                kept.head = after + 1;
                world.promise("x", Some(kept.clone()), false);
            }
        }
        if round == 1 {
            inner.remove(&lease, Remove::Below(Seq(u64::MAX))).unwrap();
            let page = page(inner, "x", ReadFrom::Snapshot).unwrap().unwrap();
            (kept.head, kept.first) = (page.head.0, page.first.0);
            assert!(kept.first > 1);
            world.promise("x", Some(kept.clone()), false);
        }
        let lease = claim(inner, "y").unwrap();
        world.written.entry("y").or_default().push(b"y".to_vec());
        append(inner, &lease, 0, b"y", Phase::Ended, true).unwrap();
        world.promise("y", Some(Kept { head: 1, messages: 0, first: 1 }), false);
        world.promise("y", None, true);
        inner.remove(&lease, Remove::All).unwrap();
        world.promise("y", None, false);
    }
    world
}

/// What is on the disk: the contents of files, and the names that lead to them.
#[derive(Clone, Default)]
pub(super) struct Image {
    files: HashMap<usize, Vec<u8>>,
    names: BTreeMap<PathBuf, usize>,
    dirs: BTreeSet<PathBuf>,
}

pub(super) fn crash(ops: &[Op], rng: &mut TestRng, keep: u32) -> Image {
    let synced = |number: usize, place: usize| {
        ops[place..].iter().any(|op| matches!(op, Op::Sync(synced) if *synced == number))
    };
    let named = |path: &Path, place: usize| {
        let parent = path.parent().unwrap();
        ops[place..].iter().any(|op| matches!(op, Op::SyncDir(dir) if dir == parent))
    };
    let mut image = Image::default();
    for (place, op) in ops.iter().enumerate() {
        let lucky = rng.next_u32() % 100 < keep;
        match op {
            Op::MakeDir(path) => {
                // Without its directories there is nothing to look at.
                if lucky || named(path, place) {
                    image.dirs.insert(path.clone());
                }
            }
            Op::Create(path, number) => {
                if lucky || named(path, place) {
                    image.names.insert(path.clone(), *number);
                }
            }
            Op::Write(number, offset, bytes) => {
                let bytes = if lucky || synced(*number, place) {
                    &bytes[..]
                } else if rng.next_u32().is_multiple_of(3) {
                    &bytes[..rng.next_u32() as usize % bytes.len()]
                } else {
                    continue;
                };
                let file = image.files.entry(*number).or_default();
                let offset = *offset as usize;
                if file.len() < offset + bytes.len() {
                    file.resize(offset + bytes.len(), 0);
                }
                file[offset..offset + bytes.len()].copy_from_slice(bytes);
            }
            Op::Rename(from, to) => {
                if (lucky || named(to, place))
                    && let Some(number) = image.names.remove(from)
                {
                    image.names.insert(to.clone(), number);
                }
            }
            Op::Unlink(path) => {
                if lucky || named(path, place) {
                    image.names.remove(path);
                }
            }
            Op::Sync(_) | Op::SyncDir(_) => {}
        }
    }
    image
}

pub(super) fn materialise(image: &Image, from: &Path, to: &Path) {
    let moved = |path: &Path| to.join(path.strip_prefix(from).unwrap());
    for dir in &image.dirs {
        std::fs::create_dir_all(moved(dir)).unwrap();
    }
    for (path, number) in &image.names {
        if path.ends_with(PLACE) {
            // It would show that this is a copy.
            continue;
        }
        // No process holds the lock of a store after a loss of power.
        let path = moved(path);
        if path.parent().unwrap().is_dir() {
            let bytes = image.files.get(number).cloned().unwrap_or_default();
            std::fs::write(&path, bytes).unwrap();
        }
    }
}

/// What is found does not depend on syncs from here on.
pub(super) fn unsynced(dir: &Path) -> FileStore {
    FileStoreOptions::new().sync(Sync::Never).open_on(Arc::new(Restarted), dir).unwrap()
}

fn check(world: &World, ops: usize, dir: &Path, what: &str) {
    let store = unsynced(dir);
    for session in ["x", "y"] {
        let promise =
            world.promises.iter().rev().find(|one| one.ops <= ops && one.session == session);
        let next = world.promises.iter().find(|one| one.ops > ops && one.session == session);
        let first = next.and_then(|next| next.kept.as_ref()).map_or(1, |kept| kept.first);
        let found = page(&store.inner, session, ReadFrom::SnapshotBelow(Seq(u64::MAX)));
        let found = found.unwrap_or_else(|error| {
            let log = std::fs::read(store.inner.log_path(&id(session))).unwrap();
            panic!("{what}: {session}: {error} {}", log.escape_ascii())
        });
        let Some(promise) = promise else { continue };
        match (&promise.kept, found) {
            (Some(kept), Some(page)) => {
                assert!(page.head.0 >= kept.head, "{what}: {} of {kept:?}", page.head);
                assert!(page.messages.len() >= kept.messages, "{what}: {kept:?}");
                assert!(page.first.0 == kept.first || page.first.0 == first, "{what}: {kept:?}");
                for (place, stored) in page.messages.iter().enumerate() {
                    assert_eq!(stored.seq.0, place as u64 + 1);
                    assert_eq!(stored.message.body, b"body");
                }
                let begin = ReadFrom::Seq(page.first);
                let page = super::page(&store.inner, session, begin).unwrap().unwrap();
                let all = &world.written[session];
                for entry in &page.entries {
                    assert_eq!(entry.bytes, all[entry.seq.0 as usize - 1], "{what}");
                }
                assert_eq!(page.entries.len() as u64, page.head.0 - page.first.0 + 1);
            }
            (Some(kept), None) => panic!("{what}: {session} with {kept:?} is gone"),
            (None, Some(_)) if !promise.leaving && next.is_none_or(|next| next.leaving) => {
                panic!("{what}: {session} was removed and is there")
            }
            (None, _) => {}
        }
    }
    // The session can be continued, and what is written then is there too.
    let lease = claim(&store.inner, "x").unwrap_or_else(|error| panic!("{what}: {error}"));
    let head = match page(&store.inner, "x", ReadFrom::Snapshot).unwrap() {
        Some(page) => page.head.0,
        None => 0,
    };
    append(&store.inner, &lease, head, b"after", Phase::Ended, true)
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    drop(store);
    let store = unsynced(dir);
    let found = page(&store.inner, "x", ReadFrom::Snapshot);
    let found = found.unwrap_or_else(|error: StoreError| panic!("{what}: then {error}"));
    assert_eq!(found.unwrap().entries.last().unwrap().bytes, b"after", "{what}");
}

#[test]
fn what_was_acknowledged_survives_a_loss_of_power_at_any_moment() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("store");
    let world = work(&dir);
    let ops = world.disk.tape.lock().unwrap().ops.clone();
    let mut rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut promised = 0;
    for end in 0..=ops.len() {
        for (attempt, keep) in [0, 100, 20, 20, 50, 50, 50, 50, 80, 80].into_iter().enumerate() {
            let image = crash(&ops[..end], &mut rng, keep);
            let after = parent.path().join(format!("{end}-{attempt}"));
            std::fs::create_dir(&after).unwrap();
            materialise(&image, &dir, &after);
            check(&world, end, &after, &format!("{keep}% of the unsynced of {end} operations"));
            std::fs::remove_dir_all(&after).unwrap();
            promised += 1;
        }
    }
    println!("{promised} losses of power over {} operations", ops.len());
}
