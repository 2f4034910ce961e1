//! The key of a store: random, created once, kept beside the values.
use std::io::Write as _;
use std::path::Path;

use crate::cipher::Cipher;

use super::BlobError;
use super::pack::create;

/// The name of the key's file.
const NAME: &str = "key";

/// The place of an encrypted key.
const PLACE: &[u8] = b"blob key";

/// The most bytes of the file of an encrypted key.
const LONGEST: u64 = 1024;

/// The key of the store in a directory. Creates it if it is missing.
pub(super) fn of(dir: &Path, cipher: Option<&dyn Cipher>) -> Result<[u8; 32], BlobError> {
    let path = dir.join(NAME);
    if std::fs::symlink_metadata(&path).is_err() {
        make(dir, &path, cipher)?;
    }
    let bad = || BlobError::Key { path: path.clone() };
    let fits = |length| if cipher.is_some() { length <= LONGEST } else { length == 32 };
    if !std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_file() && fits(found.len())) {
        return Err(bad());
    }
    let bytes = std::fs::read(&path).map_err(BlobError::io("failed to read", &path))?;
    let bytes = match cipher {
        None => bytes,
        Some(cipher) => cipher.decrypt(PLACE, &bytes).map_err(|source| BlobError::Cipher {
            what: format!("the key of the blob store, {}", path.display()),
            source,
        })?,
    };
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

fn make(dir: &Path, path: &Path, cipher: Option<&dyn Cipher>) -> Result<(), BlobError> {
    let key = random();
    let content = cipher.map_or_else(|| key.to_vec(), |cipher| cipher.encrypt(PLACE, &key));
    let temporary = dir.join(format!("{}.new", uuid::Uuid::new_v4().simple()));
    let written = create(&temporary).and_then(|mut file| {
        file.write_all(&content)?;
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
