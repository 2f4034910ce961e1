//! Encryption of what a graph stores.
use std::fmt;

use thiserror::Error;

/// Encrypts what a graph stores in a directory, with keys that are kept elsewhere:
/// [`CodeGraph::open_encrypted`](crate::CodeGraph::open_encrypted). `Keys` of `harness-store` (its
/// feature `code`) is one.
///
/// The bytes are bound to their place: they decrypt at no other one. `Debug` must show no secret.
pub trait Cipher: Send + Sync + fmt::Debug {
    /// Encrypts bytes for a place.
    fn encrypt(&self, place: &[u8], bytes: &[u8]) -> Vec<u8>;

    /// Decrypts what was encrypted for this place.
    ///
    /// # Errors
    /// Why that is not possible.
    fn decrypt(&self, place: &[u8], encrypted: &[u8]) -> Result<Vec<u8>, CipherError>;
}

/// Why bytes were not decrypted. It contains none of them.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CipherError {
    /// They are not encrypted.
    #[error("it is not encrypted")]
    Plain,
    /// They were changed, or belong to another place.
    #[error("it was changed, or belongs to another place")]
    Damaged,
    /// The key is not at hand.
    #[error(
        "it is encrypted with the key `{key}`, which was not given [give it to read what it has encrypted]"
    )]
    MissingKey {
        /// The id of the key.
        key: String,
    },
    /// The key at hand is another one.
    #[error(
        "it is encrypted with another key than the one given as `{key}` [the id is the same, the \
         secret differs]"
    )]
    WrongKey {
        /// The id of the keys.
        key: String,
    },
}

impl CipherError {
    /// Whether the bytes are sound, as far as can be seen without their key.
    pub(crate) fn is_of_key(&self) -> bool {
        matches!(self, Self::MissingKey { .. } | Self::WrongKey { .. })
    }
}
