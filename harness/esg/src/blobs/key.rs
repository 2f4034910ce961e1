//! The key of a store: random, created once, kept beside the values.
use std::io::Write as _;
use std::path::Path;

use super::BlobError;
use super::pack::create;

/// The name of the key's file.
const NAME: &str = "key";

/// The key of the store in a directory. Creates it if it is missing.
pub(super) fn of(dir: &Path) -> Result<[u8; 32], BlobError> {
    let path = dir.join(NAME);
    if std::fs::symlink_metadata(&path).is_err() {
        make(dir, &path)?;
    }
    let bad = || BlobError::Key { path: path.clone() };
    if !std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_file() && found.len() == 32) {
        return Err(bad());
    }
    let bytes = std::fs::read(&path).map_err(BlobError::io("failed to read", &path))?;
    bytes.try_into().map_err(|_| bad())
}

/// A new random key.
pub(super) fn random() -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    // Each has 122 random bits.
    for _ in 0..4 {
        hasher.update(uuid::Uuid::new_v4().as_bytes());
    }
    *hasher.finalize().as_bytes()
}

fn make(dir: &Path, path: &Path) -> Result<(), BlobError> {
    let temporary = dir.join(format!("{}.new", uuid::Uuid::new_v4().simple()));
    let written = create(&temporary).and_then(|mut file| {
        file.write_all(&random())?;
        file.sync_all()?;
        // Unlike a rename, a link does not replace a key that another process has just created.
        std::fs::hard_link(&temporary, path)
    });
    let _ = std::fs::remove_file(&temporary);
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(BlobError::io("failed to make", path)(error)),
        Ok(()) => super::disk::sync_dir(dir),
    }
}
