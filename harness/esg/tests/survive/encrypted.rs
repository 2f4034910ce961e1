//! Graphs whose directory is encrypted.
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness_esg::{
    BlobLimits, Blobs, Cipher, CipherError, CodeGraph, EsgError, Reason, StoredValue,
};
use serde_json::json;

use super::{push, shown, worker};

/// A cipher for tests, of the hash that the crate has: a keystream, and a tag in front.
#[derive(Clone)]
struct Toy(Vec<(&'static str, [u8; 32])>);

impl Toy {
    fn of(ids: &[&'static str]) -> Self {
        Self(ids.iter().map(|id| (*id, secret(id))).collect())
    }
}

fn secret(id: &str) -> [u8; 32] {
    blake3::derive_key("test keys", id.as_bytes())
}

impl fmt::Debug for Toy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(id, _)| id)).finish()
    }
}

/// The bytes with a keystream for their place.
fn stream(key: &[u8; 32], place: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut stream = vec![0; bytes.len()];
    blake3::Hasher::new_keyed(key).update(place).finalize_xof().fill(&mut stream);
    bytes.iter().zip(stream).map(|(byte, with)| byte ^ with).collect()
}

fn tag(key: &[u8; 32], place: &[u8], bytes: &[u8]) -> blake3::Hash {
    let length = (place.len() as u64).to_le_bytes();
    blake3::Hasher::new_keyed(key).update(&length).update(place).update(bytes).finalize()
}

impl Cipher for Toy {
    fn encrypt(&self, place: &[u8], bytes: &[u8]) -> Vec<u8> {
        let (id, key) = &self.0[0];
        let tag = tag(key, place, bytes);
        [id.as_bytes(), b"/", tag.as_bytes(), &stream(key, place, bytes)].concat()
    }

    fn decrypt(&self, place: &[u8], encrypted: &[u8]) -> Result<Vec<u8>, CipherError> {
        let end = encrypted.iter().position(|byte| *byte == b'/').filter(|end| *end < 8);
        let end = end.ok_or(CipherError::Plain)?;
        let id = String::from_utf8_lossy(&encrypted[..end]).into_owned();
        let key = self.0.iter().find(|(known, _)| **known == id);
        let key = key.ok_or(CipherError::MissingKey { key: id })?.1;
        let (found, rest) =
            encrypted[end + 1..].split_at_checked(32).ok_or(CipherError::Damaged)?;
        let bytes = stream(&key, place, rest);
        match tag(&key, place, &bytes).as_bytes() == found {
            true => Ok(bytes),
            false => Err(CipherError::Damaged),
        }
    }
}

const CANARY: &str = "canaryInTheMine";

fn canaries() -> Vec<(&'static str, String)> {
    vec![
        ("source", format!("# {CANARY}\nsmall = '{CANARY}'")),
        ("value", "large = [small + str(n) for n in range(2000)]".to_owned()),
        ("output", "print(given, large[7])".to_owned()),
        (
            "file",
            "open('kept.txt', 'w').write(large[9])\nsize = len(open('kept.txt').read())".to_owned(),
        ),
        ("failed", "raise ValueError(small)".to_owned()),
    ]
}

fn open(dir: &Path, ids: &[&'static str]) -> Result<CodeGraph, EsgError> {
    CodeGraph::open_encrypted(dir, worker(), Toy::of(ids))
}

fn filled(dir: &Path, ids: &[&'static str]) -> CodeGraph {
    let mut graph = open(dir, ids).unwrap();
    let steps = canaries();
    let steps: Vec<(&str, &str)> = steps.iter().map(|(id, source)| (*id, &**source)).collect();
    graph.edit(|program| program.input("given", json!(CANARY))).unwrap();
    graph.edit(|program| push(program, &steps)).unwrap();
    let report = graph.replay().unwrap();
    assert_eq!(report.failed.len(), 1, "{report}");
    graph
}

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// The files below a directory that contain the canary, or its hex.
fn canaries_in(dir: &Path) -> Vec<PathBuf> {
    let hex: String = CANARY.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut found = Vec::new();
    files(dir, &mut found);
    found.retain(|path| {
        let bytes = fs::read(path).unwrap();
        let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        has(CANARY) || has(&hex)
    });
    found
}

#[test]
fn no_byte_of_the_program_is_in_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let graph = filled(dir.path(), &["a"]);
    assert!(!format!("{graph:?}").contains(CANARY), "{graph:?}");
    // While the graph is open, the directory of the steps is plain.
    let scratch = dir.path().join("scratch/work/kept.txt");
    assert_eq!(canaries_in(dir.path()), [scratch]);
    drop(graph);
    assert_eq!(canaries_in(dir.path()), Vec::<PathBuf>::new());

    // A process that is killed leaves files, and the next one removes them before it runs anything.
    fs::create_dir_all(dir.path().join("scratch/work/d")).unwrap();
    fs::write(dir.path().join("scratch/work/d/left"), CANARY).unwrap();
    let mut graph = open(dir.path(), &["a"]).unwrap();
    assert_eq!(canaries_in(dir.path()), Vec::<PathBuf>::new());
    // What ran is kept, its files come back, and an edit runs what it affects.
    assert_eq!(graph.replay().unwrap().executed().count(), 0);
    assert!(shown(&mut graph, "large").contains(CANARY));
    graph.edit(|program| program.replace("output", "print(given, large[8])")).unwrap();
    let report = graph.replay().unwrap();
    assert_eq!(report.ran, [("output".into(), Reason::Edited)]);
    assert!(graph.verify().unwrap().same);
    graph.compact().unwrap();
    drop(graph);
    assert_eq!(canaries_in(dir.path()), Vec::<PathBuf>::new());
    let mut graph = open(dir.path(), &["a"]).unwrap();
    assert_eq!(graph.replay().unwrap().executed().count(), 0);
}

#[test]
fn without_its_keys_nothing_is_read_and_nothing_changes() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path(), &["a"]));
    let journal = || fs::read(dir.path().join("journal")).unwrap();
    let before = journal();
    let missing = open(dir.path(), &["b"]).unwrap_err();
    let expected = CipherError::MissingKey { key: "a".to_owned() };
    assert_eq!(missing.cipher_error(), Some(&expected), "{missing}");
    let plain = CodeGraph::open(dir.path(), worker()).unwrap_err();
    assert!(plain.is_encrypted(), "{plain}");
    for error in [missing, plain] {
        assert!(!format!("{error} {error:?}").contains(CANARY));
    }
    assert_eq!(journal(), before);

    // A new key writes, the old one reads.
    let mut graph = open(dir.path(), &["b", "a"]).unwrap();
    graph.edit(|program| program.push("new", "more = [len(x) for x in large]")).unwrap();
    assert_eq!(graph.replay().unwrap().executed().count(), 1);
    drop(graph);
    for one in ["a", "b"] {
        let other = if one == "a" { "b" } else { "a" };
        let error = open(dir.path(), &[one]).unwrap_err();
        let expected = CipherError::MissingKey { key: other.to_owned() };
        assert_eq!(error.cipher_error(), Some(&expected), "{error}");
    }
    let mut graph = open(dir.path(), &["b", "a"]).unwrap();
    assert_eq!(graph.replay().unwrap().executed().count(), 0);
    drop(graph);

    // A graph that was not encrypted stays so.
    let other = tempfile::tempdir().unwrap();
    let mut graph = CodeGraph::open(other.path(), worker()).unwrap();
    graph.edit(|program| program.push("a", "n = 1")).unwrap();
    drop(graph);
    let refused = open(other.path(), &["a"]).unwrap_err();
    assert_eq!(refused.cipher_error(), Some(&CipherError::Plain), "{refused}");
    CodeGraph::open(other.path(), worker()).unwrap();
}

#[test]
fn a_journal_cut_anywhere_opens_and_lines_that_moved_are_damage() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path(), &["a"]));
    let path = dir.path().join("journal");
    let whole = fs::read(&path).unwrap();
    let ends: Vec<usize> = whole
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .map(|(at, _)| at + 1)
        .collect();
    // In the first line, the last byte of which is its end, and around the ends of others.
    let mut cuts: Vec<usize> = vec![0, 1, 17, ends[0] - 1, ends[0], whole.len() - 1];
    cuts.extend(ends[1..].iter().step_by(3).flat_map(|end| [end - 1, *end]));
    for cut in cuts {
        fs::write(&path, &whole[..cut]).unwrap();
        let graph = open(dir.path(), &["a"]).unwrap();
        drop(graph);
        let left = fs::metadata(&path).unwrap().len() as usize;
        let sound = ends.iter().rev().find(|end| **end <= cut).copied();
        assert_eq!(left, sound.unwrap_or(ends[0]), "cut at {cut}");
    }
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let mut moved = vec![lines.clone(), lines.clone(), lines.clone()];
    moved[0].swap(2, 3);
    moved[1].remove(2);
    moved[2].insert(2, lines[1]);
    // A line of another graph with the same keys.
    let other = tempfile::tempdir().unwrap();
    drop(filled(other.path(), &["a"]));
    let foreign = fs::read(other.path().join("journal")).unwrap();
    let foreign: Vec<&[u8]> = foreign.split_inclusive(|byte| *byte == b'\n').collect();
    moved.push([&lines[..2], &foreign[2..3], &lines[3..]].concat());
    for (n, lines) in moved.into_iter().enumerate() {
        fs::write(&path, lines.concat()).unwrap();
        let error = open(dir.path(), &["a"]).unwrap_err();
        assert!(error.is_damaged(), "{n}: {error}");
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(open(dir.path(), &["a"]).unwrap().replay().unwrap().executed().count(), 0);
}

#[test]
fn values_that_were_swapped_or_cut_are_missing_and_equal_ones_do_not_show() {
    let dir = tempfile::tempdir().unwrap();
    let make = |name: &str| {
        let at = dir.path().join(name);
        let toy = std::sync::Arc::new(Toy::of(&["a"]));
        Blobs::dir_encrypted(at, BlobLimits::default(), toy).unwrap()
    };
    let (one, two) = (vec![b'1'; 5000], vec![b'2'; 5000]);
    let blobs = make("a");
    let ids = [&one, &two].map(|bytes| blobs.put(bytes).unwrap());
    blobs.flush().unwrap();
    assert_eq!(blobs.get(&ids[0]).unwrap().as_deref(), Some(&one[..]));
    assert!(!format!("{blobs:?}").contains("49, 49"), "{blobs:?}");
    // The same value elsewhere has another id and other bytes.
    let other = make("b");
    assert_ne!(other.put(&one).unwrap(), ids[0]);
    assert!(matches!(blobs.store(b"tiny").unwrap(), StoredValue::Inline(_)));

    let mut paths = Vec::new();
    files(&dir.path().join("a"), &mut paths);
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "pack"));
    let [pack] = &paths[..] else { panic!("{paths:?}") };
    let whole = fs::read(pack).unwrap();
    // A mark of 8 bytes, and two records of one length, each with a head of 36.
    let (records, length) = (&whole[8..], (whole.len() - 8) / 2);
    let (first, second) = records.split_at(length);
    let swapped = [&whole[..8], &first[..36], &second[36..], &second[..36], &first[36..]].concat();
    fs::write(pack, &swapped).unwrap();
    let blobs = make("a");
    assert_eq!((blobs.get(&ids[0]).unwrap(), blobs.get(&ids[1]).unwrap()), (None, None));
    assert_eq!(blobs.corrupt(), 2);
    for cut in [whole.len() - 1, 8 + length, 8 + length - 1, 40] {
        fs::write(pack, &whole[..cut]).unwrap();
        let blobs = make("a");
        let first = blobs.get(&ids[0]).unwrap();
        assert_eq!(first.is_some(), cut >= 8 + length, "{cut}");
        assert_eq!(blobs.get(&ids[1]).unwrap(), None);
    }
    // With a key that is not at hand a value is not lost.
    fs::write(pack, &whole).unwrap();
    let key = dir.path().join("a/key");
    let toy = Toy::of(&["b", "a"]);
    let bytes = toy.decrypt(b"blob key", &fs::read(&key).unwrap()).unwrap();
    fs::write(&key, toy.encrypt(b"blob key", &bytes)).unwrap();
    let limits = BlobLimits::default();
    let at = dir.path().join("a");
    let only = Blobs::dir_encrypted(&at, limits, std::sync::Arc::new(Toy::of(&["b"]))).unwrap();
    assert!(only.get(&ids[0]).unwrap_err().to_string().contains("decrypt"));
    let both = Blobs::dir_encrypted(&at, limits, std::sync::Arc::new(toy)).unwrap();
    assert_eq!(both.get(&ids[0]).unwrap().as_deref(), Some(&one[..]));
    assert_eq!(both.sweep(ids, Duration::ZERO).unwrap().kept, 2);
}
