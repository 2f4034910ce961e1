//! Files of notes: cut, damaged, copied, and written by many.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use harness::store::Token;
use proptest::test_runner::{RngAlgorithm, TestRng};
use serde_json::json;

use super::{Key, Known, Line, NAME, Notes};
use crate::file::disk::{Disk, RealDisk};
use crate::file::rest::Rest;
use crate::file::tests::power_loss::{crash, materialise};
use crate::file::tests::recording::{Op, Recording};

const LIFE: &str = "00000000000000000000000000000001";

fn rest(name: &str, life: &str, head: u64) -> Rest {
    let facts = json!({"agent": "a", "phase": "ended", "step": "S"});
    let note = json!({
        "id": name, "life": life, "offset": head * 100, "sum": 7, "head": head,
        "created": 1, "updated": 2, "facts": facts, "mail": 0
    });
    serde_json::from_value(note).unwrap()
}

/// A note of many bytes.
fn long(head: u64) -> Rest {
    rest(&"x".repeat(500), LIFE, head)
}

fn notes(dir: &Path, durable: bool) -> Arc<Notes> {
    Arc::new(Notes::new(Arc::new(RealDisk), dir, durable))
}

fn head(notes: &Notes, key: u128) -> Option<u64> {
    notes.find(Key(key)).unwrap().map(|rest| rest.head)
}

/// How many notes it takes until most of a file is out of date.
fn until_copied(notes: &Arc<Notes>) -> u64 {
    let number = |notes: &Notes| notes.lock().files;
    let files = number(notes);
    (1..).find(|head| notes.leave(Key(1), &long(*head)).is_ok() && number(notes) > files).unwrap()
}

#[test]
fn wherever_it_is_cut_what_was_noted_before_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    let (mut ends, token) = (vec![0], Token::random());
    let sound = notes(dir.path(), false);
    for head in 1..4 {
        sound.leave(Key(1), &rest("x", LIFE, head)).unwrap();
        ends.push(path.metadata().unwrap().len());
        sound.release(Key(1), token).unwrap();
        sound.leave(Key(2), &rest("y", LIFE, 10 * head)).unwrap();
    }
    let whole = std::fs::read(&path).unwrap();
    for len in 0..=whole.len() {
        std::fs::write(&path, &whole[..len]).unwrap();
        let cut = notes(dir.path(), false);
        // A note that lacks nothing but the newline behind it is there once another comes.
        let noted = ends.iter().filter(|end| **end <= len as u64).count() as u64 - 1;
        assert_eq!(head(&cut, 1), (noted > 0).then_some(noted), "cut to {len}");
        cut.leave(Key(3), &rest("z", LIFE, 1)).unwrap();
        for reader in [&cut, &notes(dir.path(), false)] {
            assert_eq!(head(reader, 3), Some(1), "cut to {len}");
            let known = head(reader, 1).unwrap_or(0);
            assert!(known == noted || known == noted + 1, "cut to {len}: {known}");
        }
    }
    // Whoever had more of it open reads it anew.
    let known = notes(dir.path(), false);
    assert_eq!(head(&known, 3), Some(1));
    std::fs::write(&path, &whole[..ends[1] as usize]).unwrap();
    assert_eq!((head(&known, 1), head(&known, 3)), (Some(1), None));
}

#[test]
fn a_bit_that_flips_costs_one_note() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    let sound = notes(dir.path(), false);
    for head in 1..4 {
        sound.leave(Key(1), &rest("x", LIFE, head)).unwrap();
        sound.leave(Key(2), &rest("y", LIFE, head)).unwrap();
    }
    let whole = std::fs::read(&path).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let mut damaged = Known::default();
        damaged.advance(&bytes);
        let mut lost = 0;
        for (key, name) in [(1, "x"), (2, "y")] {
            // The one before it holds then, and never what was not noted.
            let place = damaged.places[&Key(key)];
            let start = place.offset as usize;
            let line = Line::parse(&bytes[start..start + place.len]);
            let Some(Line::Note { json, .. }) = line else { panic!("bit {bit}: {line:?}") };
            let found: Rest = serde_json::from_str(json).unwrap();
            assert!(found.head == 3 || found.head == 2, "bit {bit}");
            assert_eq!(found, rest(name, LIFE, found.head), "bit {bit}");
            lost += 3 - found.head;
        }
        // Where two lines become one, both are lost.
        assert!(lost <= 2, "bit {bit}");
    }
}

#[test]
fn a_note_that_is_damaged_while_it_is_known_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    let known = notes(dir.path(), false);
    known.leave(Key(1), &rest("x", LIFE, 1)).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[60] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(head(&known, 1), None);
}

#[test]
fn a_release_is_of_one_lease_and_one_rest() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (notes(dir.path(), false), notes(dir.path(), false));
    let (first, second) = (Token::random(), Token::random());
    one.leave(Key(1), &rest("x", LIFE, 1)).unwrap();
    assert!(!other.is_released(Key(1), first).unwrap());
    one.release(Key(1), first).unwrap();
    assert!(other.is_released(Key(1), first).unwrap());
    assert!(!other.is_released(Key(1), second).unwrap());
    assert!(!other.is_released(Key(2), first).unwrap());
    other.leave(Key(1), &rest("x", LIFE, 2)).unwrap();
    assert!(!one.is_released(Key(1), first).unwrap());
}

#[test]
fn what_holds_is_copied_when_most_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    let (one, other) = (notes(dir.path(), true), notes(dir.path(), true));
    let token = Token::random();
    other.leave(Key(2), &rest("y", LIFE, 5)).unwrap();
    other.release(Key(2), token).unwrap();
    std::fs::write(dir.path().join(format!("{NAME}.left.next")), "behind").unwrap();
    let last = until_copied(&one);
    assert!(last > 60, "{last}");
    assert!(path.metadata().unwrap().len() < 2_000);
    // Who has the file before open goes on in the one that took its place.
    other.leave(Key(3), &rest("z", LIFE, 6)).unwrap();
    for reader in [&one, &other, &notes(dir.path(), true)] {
        let heads = [1, 2, 3].map(|key| head(reader, key));
        assert_eq!(heads, [Some(last), Some(5), Some(6)]);
        assert!(reader.is_released(Key(2), token).unwrap());
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn who_has_not_seen_the_copy_writes_into_it() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (notes(dir.path(), false), notes(dir.path(), false));
    other.leave(Key(2), &rest("y", LIFE, 1)).unwrap();
    // The copy was made, and its maker is gone before the file has its name.
    let copy = format!("{NAME}.abc.next");
    let offset = dir.path().join(NAME).metadata().unwrap().len();
    std::fs::copy(dir.path().join(NAME), dir.path().join(&copy)).unwrap();
    let line = crate::file::record::line('V', &format!("{offset} {copy}"));
    let file = RealDisk.open(&dir.path().join(NAME), super::Mode::Append).unwrap();
    file.write(&line).unwrap();
    other.leave(Key(2), &rest("y", LIFE, 2)).unwrap();
    assert!(!dir.path().join(&copy).exists());
    assert_eq!((head(&one, 2), head(&other, 2)), (Some(2), Some(2)));
    assert_eq!(head(&notes(dir.path(), false), 2), Some(2));
}

#[test]
fn a_copy_does_not_count_if_something_came_or_it_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    let one = notes(dir.path(), false);
    one.leave(Key(1), &rest("x", LIFE, 1)).unwrap();
    let before = path.metadata().unwrap().len();
    let copy = format!("{NAME}.abc.next");
    std::fs::copy(&path, dir.path().join(&copy)).unwrap();
    one.leave(Key(1), &rest("x", LIFE, 2)).unwrap();
    let file = RealDisk.open(&path, super::Mode::Append).unwrap();
    file.write(&crate::file::record::line('V', &format!("{before} {copy}"))).unwrap();
    for reader in [&one, &notes(dir.path(), false)] {
        assert_eq!(head(reader, 1), Some(2));
    }
    std::fs::remove_file(dir.path().join(&copy)).unwrap();
    let now = path.metadata().unwrap().len();
    file.write(&crate::file::record::line('V', &format!("{now} {copy}"))).unwrap();
    one.leave(Key(1), &rest("x", LIFE, 3)).unwrap();
    for reader in [&one, &notes(dir.path(), false)] {
        assert_eq!(head(reader, 1), Some(3));
    }
}

#[test]
fn what_is_removed_leaves_no_byte_and_a_later_life_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    let (one, other) = (notes(dir.path(), true), notes(dir.path(), true));
    let next = LIFE.replace('1', "2");
    for head in 1..4 {
        one.leave(Key(1), &rest("secret", LIFE, head)).unwrap();
        one.leave(Key(2), &rest("y", LIFE, head)).unwrap();
    }
    assert_eq!(head(&other, 1), Some(3));
    one.remove(Key(1), LIFE).unwrap();
    assert!(!std::fs::read_to_string(&path).unwrap().contains("secret"));
    for reader in [&one, &other, &notes(dir.path(), true)] {
        assert_eq!((head(reader, 1), head(reader, 2)), (None, Some(3)));
    }
    // Whoever comes late to remove the life before takes nothing from the next.
    other.leave(Key(1), &rest("again", &next, 1)).unwrap();
    one.remove(Key(1), LIFE).unwrap();
    for reader in [&one, &other, &notes(dir.path(), true)] {
        assert_eq!((head(reader, 1), head(reader, 2)), (Some(1), Some(3)));
    }
}

#[test]
fn no_note_is_lost_while_many_write_and_copy() {
    const EACH: u64 = 400;
    let dir = tempfile::tempdir().unwrap();
    let files = std::thread::scope(|scope| {
        let writers = [1, 2, 3].map(|key| {
            let own = notes(dir.path(), false);
            scope.spawn(move || {
                for count in 1..=EACH {
                    own.leave(Key(key), &long(count)).unwrap();
                    assert_eq!(head(&own, key), Some(count));
                }
                own.lock().files
            })
        });
        writers.map(|writer| writer.join().unwrap())
    });
    assert!(files.iter().all(|files| *files > 2), "{files:?}");
    let reader = notes(dir.path(), false);
    assert_eq!([1, 2, 3].map(|key| head(&reader, key)), [Some(EACH); 3]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_note_that_was_synced_survives_a_loss_of_power_at_any_moment_of_a_copy() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("shard");
    std::fs::create_dir(&dir).unwrap();
    let disk = Arc::new(Recording::default());
    let open = || Arc::new(Notes::new(Arc::clone(&disk) as Arc<dyn Disk>, &dir, true));
    let (one, other) = (open(), open());
    let ops = || disk.tape.lock().unwrap().ops.len();
    other.leave(Key(2), &rest("y", LIFE, 5)).unwrap();
    // How many operations there were when a note was durable.
    let mut durable = HashMap::new();
    let mut last = 0;
    while one.lock().files == 0 {
        last += 1;
        one.leave(Key(1), &long(last)).unwrap();
        durable.insert(last, ops());
    }
    let before = durable[&(last - 1)];
    for _ in 0..3 {
        last += 1;
        other.leave(Key(1), &long(last)).unwrap();
        durable.insert(last, ops());
    }
    let tape = disk.tape.lock().unwrap().ops.clone();
    assert!(tape[before..].iter().any(|op| matches!(op, Op::Rename(..))));
    let mut rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    for end in before..=tape.len() {
        for (attempt, keep) in [0, 0, 100, 20, 20, 50, 50, 50, 80, 80].into_iter().enumerate() {
            let mut image = crash(&tape[..end], &mut rng, keep);
            image.keep_dir(&dir);
            let after = parent.path().join(format!("{end}-{attempt}"));
            std::fs::create_dir(&after).unwrap();
            materialise(&image, &dir, &after);
            let found = notes(&after, false);
            let noted = durable.iter().filter(|(_, at)| **at <= end).map(|(head, _)| *head);
            let (noted, what) = (noted.max().unwrap(), format!("{keep}% after {end}"));
            let known = head(&found, 1).unwrap_or_else(|| panic!("{what}: none of {noted}"));
            assert!(known >= noted, "{what}: {known} of {noted}");
            assert_eq!(head(&found, 2), Some(5), "{what}");
            found.leave(Key(1), &long(1_000)).unwrap();
            assert_eq!(head(&notes(&after, false), 1), Some(1_000), "{what}");
            std::fs::remove_dir_all(&after).unwrap();
        }
    }
}
