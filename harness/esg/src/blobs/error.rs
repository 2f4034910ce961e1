//! Why a value was not stored.
use std::io;
use std::path::PathBuf;

/// Why a value was not stored. That a stored value is missing is no error: it can be made again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// The value is larger than the store takes.
    #[error(
        "a value of {bytes} bytes is more than the {limit} that the store takes (raise `BlobLimits::value`)"
    )]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The largest that is taken.
        limit: u64,
    },
    /// The store's key can not be used.
    #[error(
        "the key of the blob store, {}, is not the 32 bytes it was made with (restore it, or remove \
         the directory: its values can then not be had any more)", .path.display()
    )]
    Key {
        /// The key's file.
        path: PathBuf,
    },
    /// The disk did not do what it was asked.
    #[error("{doing} {}", .path.display())]
    Io {
        /// What was asked.
        doing: &'static str,
        /// Of which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl BlobError {
    pub(super) fn io(
        doing: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }
}
