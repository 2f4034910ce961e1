//! The error of a blob store.
use std::io;
use std::path::PathBuf;

use crate::cipher::CipherError;

/// The error of a blob store. A missing value is not an error: it can be made again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// The value is larger than the store accepts.
    #[error(
        "a value of {bytes} bytes exceeds the store's limit of {limit} (raise `BlobLimits::value`)"
    )]
    TooLarge {
        /// Its size in bytes.
        bytes: u64,
        /// The largest accepted size.
        limit: u64,
    },
    /// The store's key is unusable.
    #[error(
        "the key of the blob store, {}, is damaged (restore it, or remove the directory and \
         with it all values)", .path.display()
    )]
    Key {
        /// The key's file.
        path: PathBuf,
    },
    /// The key file of the store, or a value, does not decrypt.
    #[error("failed to decrypt {what}")]
    Cipher {
        /// What does not decrypt.
        what: String,
        /// Why.
        #[source]
        source: CipherError,
    },
    /// An operation on a file failed.
    #[error("{doing} {}", .path.display())]
    Io {
        /// The operation.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A [store of your own](crate::BlobStore) failed.
    #[error("failed to store a value: {message}")]
    Store {
        /// What happened.
        message: String,
    },
}

impl BlobError {
    /// The error of a [store of your own](crate::BlobStore).
    #[must_use]
    pub fn store(message: impl Into<String>) -> Self {
        Self::Store { message: message.into() }
    }

    pub(super) fn io(
        doing: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }
}
