//! A content-addressed store of values.
mod disk;
mod error;
mod id;
mod key;
mod pack;
mod shelf;
mod store;

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use error::BlobError;
pub use id::{BlobId, StoredValue};
pub use store::BlobStore;

use crate::cipher::Cipher;
use crate::exec::Blob;
use crate::model::Fingerprint;

use id::INLINE;
use store::Shelved;

/// The largest value: what encryption adds to it fits into a record as well.
const LONGEST: u64 = pack::LONGEST - 1024;

/// The limits of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlobLimits {
    /// The largest value in bytes: 64 MiB by default, never more than 4 GiB.
    pub value: u64,
    /// All values together in bytes: 1 GiB by default. Beyond that, the least recently used values
    /// are evicted.
    pub store: u64,
}

impl Default for BlobLimits {
    fn default() -> Self {
        Self { value: 64 << 20, store: 1 << 30 }
    }
}

/// What a sweep removed, and what it left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlobsSwept {
    /// The number of removed values.
    pub removed: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// The number of values left.
    pub kept: u64,
}

/// A content-addressed store of values. Cheap to clone; all clones are the same store.
///
/// A stored value may get lost to a full disk, to damage or to the limits. This is not an error:
/// [`get`](Blobs::get) returns `None`, and the value can be made again by running its step. A
/// returned value always equals what was put: it is hashed again when it is read.
///
/// Methods block on the disk.
///
/// ```
/// use harness_esg::Blobs;
///
/// let blobs = Blobs::memory();
/// let id = blobs.put(b"rows")?;
/// assert_eq!(blobs.get(&id)?.as_deref(), Some(&b"rows"[..]));
/// # Ok::<(), harness_esg::BlobError>(())
/// ```
#[derive(Clone)]
pub struct Blobs {
    inner: Arc<Inner>,
}

struct Inner {
    hasher: blake3::Hasher,
    cipher: Option<Arc<dyn Cipher>>,
    limits: BlobLimits,
    store: Mutex<Box<dyn BlobStore>>,
    missed: AtomicU64,
    corrupt: AtomicU64,
}

impl Blobs {
    /// A store in memory. It ends with its last clone.
    #[must_use]
    pub fn memory() -> Self {
        Self::memory_with(BlobLimits::default())
    }

    /// A store in memory with other limits.
    #[must_use]
    pub fn memory_with(limits: BlobLimits) -> Self {
        Self::over(Shelved::memory(limits.store), key::random(), limits)
    }

    /// The store in a directory, which is created if it is missing. All files are readable by their
    /// owner only, and so is the directory if it is created here.
    ///
    /// Several processes may use one directory. Files that are damaged or foreign are ignored or
    /// set aside.
    ///
    /// # Errors
    /// [`BlobError::Key`] if the store has lost its key, [`BlobError::Io`].
    pub fn dir(path: impl AsRef<Path>) -> Result<Self, BlobError> {
        Self::dir_with(path, BlobLimits::default())
    }

    /// The store in a directory with other limits.
    ///
    /// # Errors
    /// As [`dir`](Blobs::dir).
    pub fn dir_with(path: impl AsRef<Path>, limits: BlobLimits) -> Result<Self, BlobError> {
        Self::at(path.as_ref(), limits, None)
    }

    /// The store in a directory whose values are encrypted, each bound to its id. The key of the ids is
    /// stored encrypted as well, so that an id shows nothing of its value. Sizes count encrypted bytes.
    ///
    /// A store whose values are not encrypted cannot be opened so, and the other way round.
    ///
    /// # Errors
    /// As [`dir`](Blobs::dir), and [`BlobError::Cipher`] if the key of the store does not decrypt.
    pub fn dir_encrypted(
        path: impl AsRef<Path>,
        limits: BlobLimits,
        cipher: Arc<dyn Cipher>,
    ) -> Result<Self, BlobError> {
        Self::at(path.as_ref(), limits, Some(cipher))
    }

    fn at(
        path: &Path,
        limits: BlobLimits,
        cipher: Option<Arc<dyn Cipher>>,
    ) -> Result<Self, BlobError> {
        disk::make_dir(path)?;
        let key = key::of(path, cipher.as_deref())?;
        Ok(Self::with(Shelved::dir(path, limits.store), key, limits, cipher))
    }

    /// A store of your own. Ids are hashes under `key`, which must be the same each time the store is
    /// opened. The size of a value is limited here, that of the store by the store.
    #[must_use]
    pub fn over(store: impl BlobStore + 'static, key: [u8; 32], limits: BlobLimits) -> Self {
        Self::with(store, key, limits, None)
    }

    fn with(
        store: impl BlobStore + 'static,
        key: [u8; 32],
        limits: BlobLimits,
        cipher: Option<Arc<dyn Cipher>>,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                cipher,
                hasher: blake3::Hasher::new_keyed(&key),
                limits: BlobLimits { value: limits.value.min(LONGEST), ..limits },
                store: Mutex::new(Box::new(store)),
                missed: AtomicU64::new(0),
                corrupt: AtomicU64::new(0),
            }),
        }
    }

    /// Stores a value unless it is already there. It is durable after the next
    /// [`flush`](Blobs::flush).
    ///
    /// # Errors
    /// [`BlobError::TooLarge`]; [`BlobError::Io`] if much was put since the last flush.
    pub fn put(&self, bytes: &[u8]) -> Result<BlobId, BlobError> {
        self.place(bytes, || bytes.into())
    }

    /// Stores a value, or keeps it inline if it is small. It is not copied.
    ///
    /// # Errors
    /// As [`put`](Blobs::put).
    pub(crate) fn keep(&self, blob: Blob) -> Result<StoredValue, BlobError> {
        if blob.len() <= INLINE {
            return Ok(StoredValue::Inline(blob));
        }
        self.place(&blob, || blob.clone()).map(StoredValue::Blob)
    }

    fn place(&self, bytes: &[u8], blob: impl FnOnce() -> Blob) -> Result<BlobId, BlobError> {
        let (len, limit) = (bytes.len() as u64, self.inner.limits.value);
        if len > limit {
            return Err(BlobError::TooLarge { bytes: len, limit });
        }
        let id = self.id(bytes);
        let mut store = self.lock();
        if store.touch(&id) {
            return Ok(id);
        }
        let blob = match &self.inner.cipher {
            Some(cipher) => cipher.encrypt(&place_of(&id), bytes).into(),
            None => blob(),
        };
        store.put(id, blob).map(|()| id)
    }

    /// Stores a value, or keeps it inline if it is small.
    ///
    /// # Errors
    /// As [`put`](Blobs::put).
    pub fn store(&self, bytes: &[u8]) -> Result<StoredValue, BlobError> {
        if bytes.len() <= INLINE {
            return Ok(StoredValue::Inline(bytes.into()));
        }
        self.put(bytes).map(StoredValue::Blob)
    }

    /// A value, or `None` if it is missing or damaged.
    ///
    /// # Errors
    /// [`BlobError::Cipher`] if the value is encrypted with a key that is not at hand. The value stays.
    pub fn get(&self, id: &BlobId) -> Result<Option<Blob>, BlobError> {
        let found = self.lock().get(id);
        let found = match (&self.inner.cipher, found) {
            (Some(cipher), Some(encrypted)) => match cipher.decrypt(&place_of(id), &encrypted) {
                Ok(bytes) => Some(bytes.into()),
                Err(source) if source.is_of_key() => {
                    return Err(BlobError::Cipher { what: "a stored value".to_owned(), source });
                }
                // No value has the id of these bytes.
                Err(_) => Some(encrypted),
            },
            (_, found) => found,
        };
        let sound = found.as_deref().map(|bytes| self.id(bytes) == *id);
        if sound == Some(true) {
            return Ok(found);
        }
        self.inner.missed.fetch_add(1, Ordering::Relaxed);
        if sound.is_some() {
            self.inner.corrupt.fetch_add(1, Ordering::Relaxed);
            self.lock().remove(id);
            tracing::warn!(%id, "a stored value is damaged and was removed");
        } else {
            tracing::debug!(%id, "a stored value is missing");
        }
        Ok(None)
    }

    /// The value of a [`StoredValue`].
    ///
    /// # Errors
    /// As [`get`](Blobs::get).
    pub fn load(&self, stored: &StoredValue) -> Result<Option<Blob>, BlobError> {
        match stored {
            StoredValue::Inline(bytes) => Ok(Some(bytes.clone())),
            StoredValue::Blob(id) => self.get(id),
        }
    }

    /// Makes everything that was put durable, as one group: files first, then their names.
    ///
    /// # Errors
    /// [`BlobError::Io`]. What was put since the last flush may then be lost.
    pub fn flush(&self) -> Result<(), BlobError> {
        self.lock().flush()
    }

    /// Removes every value that is not `live` and was last put longer than `grace` ago. The grace
    /// period spares values that a process has stored but not referenced yet.
    ///
    /// # Errors
    /// [`BlobError::Io`]. All live values are still there then.
    pub fn sweep(
        &self,
        live: impl IntoIterator<Item = BlobId>,
        grace: Duration,
    ) -> Result<BlobsSwept, BlobError> {
        let live: HashSet<BlobId> = live.into_iter().collect();
        self.lock().sweep(&live, grace)
    }

    /// The size of all values in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.lock().bytes()
    }

    /// The number of values asked for that were missing or damaged.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.inner.missed.load(Ordering::Relaxed)
    }

    /// The number of damaged values.
    #[must_use]
    pub fn corrupt(&self) -> u64 {
        self.inner.corrupt.load(Ordering::Relaxed)
    }

    fn id(&self, bytes: &[u8]) -> BlobId {
        let mut hasher = self.inner.hasher.clone();
        BlobId(Fingerprint::new(*hasher.update(bytes).finalize().as_bytes()))
    }

    fn lock(&self) -> MutexGuard<'_, Box<dyn BlobStore>> {
        self.inner.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of an encrypted value.
fn place_of(id: &BlobId) -> Vec<u8> {
    [b"blob ", id.0.bytes().as_slice()].concat()
}

/// Without the values.
impl fmt::Debug for Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { cipher, limits, missed, corrupt, .. } = &*self.inner;
        f.debug_struct("Blobs")
            .field("cipher", cipher)
            .field("limits", limits)
            .field("missed", missed)
            .field("corrupt", corrupt)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
