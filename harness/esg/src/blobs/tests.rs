use std::fs;
use std::path::PathBuf;

use super::*;

fn limits(value: u64, store: u64) -> BlobLimits {
    BlobLimits { value, store }
}

fn text(blobs: &Blobs, id: &BlobId) -> Option<String> {
    blobs.get(id).unwrap().map(|blob| String::from_utf8(blob.to_vec()).unwrap())
}

fn packs(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|ending| ending == "pack")).collect()
}

/// A directory with one value in it, and that value's id.
fn stored(bytes: &[u8]) -> (tempfile::TempDir, BlobId) {
    let dir = tempfile::tempdir().unwrap();
    let blobs = Blobs::dir(dir.path()).unwrap();
    let id = blobs.put(bytes).unwrap();
    blobs.flush().unwrap();
    (dir, id)
}

#[test]
fn what_is_put_is_got_in_memory_and_from_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    for blobs in [Blobs::memory(), Blobs::dir(dir.path()).unwrap()] {
        let (one, two) = (blobs.put(b"one").unwrap(), blobs.put(b"").unwrap());
        assert_eq!(blobs.put(b"one").unwrap(), one);
        assert_eq!(text(&blobs, &one).as_deref(), Some("one"));
        blobs.flush().unwrap();
        assert_eq!(text(&blobs, &one).as_deref(), Some("one"));
        assert_eq!(text(&blobs, &two).as_deref(), Some(""));
        assert_eq!((blobs.bytes(), blobs.missed()), (3, 0));
        let other = Blobs::memory().put(b"one").unwrap();
        assert_ne!(other, one, "each store has its own key");
        assert_eq!(text(&blobs, &other), None);
        assert_eq!((blobs.missed(), blobs.corrupt()), (1, 0));
    }
}

#[test]
fn a_directory_is_read_again_by_another_process() {
    let (dir, id) = stored(b"value");
    let first = Blobs::dir(dir.path()).unwrap();
    assert_eq!(text(&first, &id).as_deref(), Some("value"));
    let second = Blobs::dir(dir.path()).unwrap();
    for (number, flushed) in ["a", "b", "c"].into_iter().enumerate() {
        let id = second.put(flushed.as_bytes()).unwrap();
        second.flush().unwrap();
        assert_eq!(text(&first, &id).as_deref(), Some(flushed), "{number}");
    }
    assert_eq!(packs(dir.path()).len(), 2, "a store appends to one pack of its own");
}

#[test]
fn what_was_not_flushed_is_lost_with_the_process_and_nothing_else() {
    let (dir, id) = stored(b"value");
    let blobs = Blobs::dir(dir.path()).unwrap();
    let lost = blobs.put(b"lost").unwrap();
    drop(blobs);
    let blobs = Blobs::dir(dir.path()).unwrap();
    assert_eq!(text(&blobs, &lost), None);
    assert_eq!(text(&blobs, &id).as_deref(), Some("value"));
}

#[test]
fn small_values_stay_where_they_are_named() {
    let blobs = Blobs::memory();
    let small = blobs.store(&[7; 256]).unwrap();
    let large = blobs.store(&[7; 257]).unwrap();
    assert!(matches!(small, StoredValue::Inline(_)) && matches!(large, StoredValue::Blob(_)));
    for (stored, length) in [(small, 256), (large, 257)] {
        assert_eq!(blobs.load(&stored).unwrap().unwrap().len(), length);
        let json = serde_json::to_string(&stored).unwrap();
        assert_eq!(serde_json::from_str::<StoredValue>(&json).unwrap(), stored);
    }
    let json = serde_json::to_string(&StoredValue::Inline([1, 255].as_slice().into())).unwrap();
    assert_eq!(json, r#"{"inline":"01ff"}"#);
    for bad in ["0", "0g", "é"] {
        assert!(serde_json::from_str::<StoredValue>(&format!(r#"{{"inline":"{bad}"}}"#)).is_err());
    }
}

#[test]
fn limits_hold_and_the_least_used_goes_first() {
    let dir = tempfile::tempdir().unwrap();
    for blobs in
        [Blobs::memory_with(limits(4, 10)), Blobs::dir_with(dir.path(), limits(4, 10)).unwrap()]
    {
        let error = blobs.put(b"large").unwrap_err();
        assert!(matches!(error, BlobError::TooLarge { bytes: 5, limit: 4 }), "{error}");
        let ids: Vec<BlobId> =
            [b"aaaa", b"bbbb"].iter().map(|bytes| blobs.put(*bytes).unwrap()).collect();
        blobs.flush().unwrap();
        assert!(text(&blobs, &ids[0]).is_some());
        let third = blobs.put(b"cccc").unwrap();
        assert_eq!(text(&blobs, &ids[1]), None);
        assert!(text(&blobs, &ids[0]).is_some() && text(&blobs, &third).is_some());
        assert_eq!(blobs.bytes(), 8);
    }
}

#[test]
fn a_sweep_takes_what_is_not_live_and_old_enough() {
    let dir = tempfile::tempdir().unwrap();
    for blobs in [Blobs::memory(), Blobs::dir(dir.path()).unwrap()] {
        let live = blobs.put(b"live").unwrap();
        let dead = blobs.put(&[1; 10_000]).unwrap();
        blobs.flush().unwrap();
        let hour = Duration::from_secs(3600);
        let swept = blobs.sweep([live], hour).unwrap();
        assert_eq!((swept.removed, swept.kept), (0, 2), "both are too new");
        let swept = blobs.sweep([live], Duration::ZERO).unwrap();
        assert_eq!((swept.removed, swept.bytes, swept.kept), (1, 10_000, 1));
        assert_eq!(text(&blobs, &live).as_deref(), Some("live"));
        assert_eq!(text(&blobs, &dead), None);
    }
    let left: u64 = packs(dir.path()).iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert!(left < 1_000, "{left} bytes are left on disk");
    let blobs = Blobs::dir(dir.path()).unwrap();
    assert_eq!(blobs.bytes(), 4);
}

#[test]
fn the_pack_that_another_process_appends_to_is_not_swept_away() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (Blobs::dir(dir.path()).unwrap(), Blobs::dir(dir.path()).unwrap());
    one.put(b"first").unwrap();
    one.flush().unwrap();
    two.sweep([], Duration::ZERO).unwrap();
    let id = one.put(b"second").unwrap();
    one.flush().unwrap();
    assert_eq!(text(&Blobs::dir(dir.path()).unwrap(), &id).as_deref(), Some("second"));
}

#[test]
fn a_value_that_is_not_what_was_put_is_missing() {
    let (dir, id) = stored(b"value that is damaged");
    let path = packs(dir.path()).remove(0);
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, &bytes).unwrap();
    let blobs = Blobs::dir(dir.path()).unwrap();
    assert_eq!(text(&blobs, &id), None);
    assert_eq!((blobs.missed(), blobs.corrupt()), (1, 1));
    assert_eq!(blobs.put(b"value that is damaged").unwrap(), id);
    blobs.flush().unwrap();
    assert_eq!(text(&blobs, &id).as_deref(), Some("value that is damaged"));
}

#[test]
fn a_pack_cut_anywhere_is_no_crash() {
    let (dir, first) = stored(b"first value");
    let path = packs(dir.path()).remove(0);
    let whole = {
        let blobs = Blobs::dir(dir.path()).unwrap();
        blobs.put(b"second value").unwrap();
        blobs.flush().unwrap();
        fs::read(&path).unwrap()
    };
    let open = Blobs::dir(dir.path()).unwrap();
    for length in (0..whole.len()).rev() {
        fs::write(&path, &whole[..length]).unwrap();
        let blobs = Blobs::dir(dir.path()).unwrap();
        let found = text(&blobs, &first);
        assert!(found.is_none(), "{length}");
        if !path.exists() {
            break;
        }
    }
    // A store that knows the full length of the pack finds it truncated.
    assert_eq!(text(&open, &first), None);
}

#[cfg(unix)]
#[test]
fn what_else_stands_in_the_directory_is_a_miss() {
    let (dir, id) = stored(b"value");
    let path = packs(dir.path()).remove(0);
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("target");
    fs::rename(&path, &target).unwrap();
    let open = Blobs::dir(elsewhere.path()).unwrap();
    std::os::unix::fs::symlink(&target, &path).unwrap();
    let blobs = Blobs::dir(dir.path()).unwrap();
    assert_eq!(text(&blobs, &id), None, "a link is not followed");
    assert!(target.exists());
    fs::create_dir(&path).unwrap();
    fs::create_dir(dir.path().join("empty.pack")).unwrap();
    fs::write(dir.path().join("garbage.pack"), b"this is no pack").unwrap();
    let blobs = Blobs::dir(dir.path()).unwrap();
    assert_eq!(text(&blobs, &id), None);
    assert!(dir.path().join("garbage.bad").exists(), "it is set aside");
    let new = blobs.put(b"new").unwrap();
    blobs.flush().unwrap();
    assert_eq!(text(&Blobs::dir(dir.path()).unwrap(), &new).as_deref(), Some("new"));
    drop(open);
}

#[test]
fn a_length_that_lies_is_not_believed() {
    let (dir, id) = stored(b"value");
    let path = packs(dir.path()).remove(0);
    let mut bytes = fs::read(&path).unwrap();
    bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    fs::write(&path, &bytes).unwrap();
    assert_eq!(text(&Blobs::dir(dir.path()).unwrap(), &id), None);
}

#[test]
fn a_lost_or_damaged_key_is_reported() {
    let (dir, id) = stored(b"value");
    fs::write(dir.path().join("key"), b"short").unwrap();
    let error = Blobs::dir(dir.path()).unwrap_err();
    assert!(matches!(error, BlobError::Key { .. }), "{error}");
    fs::remove_file(dir.path().join("key")).unwrap();
    let blobs = Blobs::dir(dir.path()).unwrap();
    assert_eq!(text(&blobs, &id), None, "under another key it is another value");
}

#[cfg(unix)]
#[test]
fn all_files_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("a/b");
    let blobs = Blobs::dir(&dir).unwrap();
    blobs.put(b"value").unwrap();
    blobs.flush().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    let files: Vec<PathBuf> = fs::read_dir(&dir).unwrap().map(|at| at.unwrap().path()).collect();
    assert_eq!(files.len(), 2);
    for path in files {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

/// A store that keeps everything where a test can reach it.
#[derive(Clone, Debug, Default)]
struct Table(std::sync::Arc<std::sync::Mutex<std::collections::BTreeMap<BlobId, Vec<u8>>>>);

impl BlobStore for Table {
    fn touch(&mut self, id: &BlobId) -> bool {
        self.0.lock().unwrap().contains_key(id)
    }
    fn put(&mut self, id: BlobId, blob: Blob) -> Result<(), BlobError> {
        if blob.starts_with(b"full") {
            return Err(BlobError::store("the table is full"));
        }
        self.0.lock().unwrap().insert(id, blob.to_vec());
        Ok(())
    }
    fn get(&mut self, id: &BlobId) -> Option<Blob> {
        self.0.lock().unwrap().get(id).map(|bytes| bytes.as_slice().into())
    }
    fn remove(&mut self, id: &BlobId) {
        self.0.lock().unwrap().remove(id);
    }
    fn flush(&mut self) -> Result<(), BlobError> {
        Ok(())
    }
    fn sweep(&mut self, live: &HashSet<BlobId>, _: Duration) -> Result<BlobsSwept, BlobError> {
        let mut kept = self.0.lock().unwrap();
        let before = kept.len();
        kept.retain(|id, _| live.contains(id));
        let removed = (before - kept.len()) as u64;
        Ok(BlobsSwept { removed, kept: kept.len() as u64, ..BlobsSwept::default() })
    }
    fn bytes(&self) -> u64 {
        self.0.lock().unwrap().values().map(|bytes| bytes.len() as u64).sum()
    }
}

#[test]
fn a_store_of_another_kind_is_checked_and_limited_too() {
    let table = Table::default();
    let limits = BlobLimits { value: 10, ..BlobLimits::default() };
    let blobs = Blobs::over(table.clone(), [7; 32], limits);
    let [one, two] = [b"one", b"two"].map(|bytes| blobs.put(bytes).unwrap());
    assert!(matches!(blobs.put(&[0; 11]), Err(BlobError::TooLarge { .. })));
    assert!(blobs.put(b"full").unwrap_err().to_string().contains("the table is full"));
    // The same key gives the same ids.
    let again = Blobs::over(table.clone(), [7; 32], limits);
    assert_eq!((again.put(b"one").unwrap(), again.bytes()), (one, 6));
    table.0.lock().unwrap().insert(one, b"three".to_vec());
    assert_eq!(blobs.get(&one).unwrap(), None);
    assert_eq!((blobs.missed(), blobs.corrupt()), (1, 1));
    assert!(!table.0.lock().unwrap().contains_key(&one), "a damaged value stays");
    assert_eq!(blobs.sweep([two], Duration::ZERO).unwrap().kept, 1);
    assert_eq!(blobs.get(&two).unwrap().as_deref(), Some(&b"two"[..]));
}
