//! Keys, and their ids.

use std::fmt;
use std::sync::Arc;

use hmac_sha256::HMAC;
use zeroize::Zeroizing;

/// The longest id: its length is stored in one byte.
const LONGEST: usize = 255;

/// A secret of 32 random bytes, and the id under which it is stored which key encrypted what.
///
/// The secret is removed from memory with the last clone of the key, and is never displayed.
///
/// ```
/// use harness_store::Key;
///
/// // For example from `openssl rand -hex 32`, kept where the service keeps its secrets.
/// let key = Key::from_hex("2026-11", "8f0e3a5b1c6d7e2f9081a2b3c4d5e6f70123456789abcdef0123456789abcdef")?;
/// assert_eq!(format!("{key:?}"), "Key(2026-11)");
/// # Ok::<(), harness_store::KeyError>(())
/// ```
#[derive(Clone)]
pub struct Key {
    inner: Arc<Inner>,
}

struct Inner {
    id: String,
    secrets: Secrets,
    mark: [u8; 4],
}

/// One secret for each use, all derived from the key's.
pub(super) struct Secrets {
    /// Encrypts.
    pub(super) cipher: Zeroizing<[u8; 32]>,
    /// Makes nonces.
    pub(super) nonce: Zeroizing<[u8; 32]>,
    /// Makes digests of messages.
    pub(super) digest: Zeroizing<[u8; 32]>,
}

/// Text or bytes that are no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The id is empty or too long.
    #[error("the id of a key has {found} bytes (give it 1 to {LONGEST})")]
    Id {
        /// The length of the id in bytes.
        found: usize,
    },
    /// The text is not 64 hexadecimal digits.
    #[error("a key is 64 hexadecimal digits (`openssl rand -hex 32` makes one)")]
    Hex,
}

impl Key {
    /// The key with this id. Its bytes must be random: a password is none.
    ///
    /// The id is stored beside everything that the key encrypts, and errors name it.
    ///
    /// # Errors
    /// [`KeyError::Id`] if the id is empty or has more than 255 bytes.
    pub fn new(id: impl Into<String>, secret: [u8; 32]) -> Result<Self, KeyError> {
        let (id, secret) = (id.into(), Zeroizing::new(secret));
        if id.is_empty() || id.len() > LONGEST {
            return Err(KeyError::Id { found: id.len() });
        }
        let derive = |use_: &str| {
            Zeroizing::new(HMAC::mac(format!("harness-store 1 {use_}"), secret.as_slice()))
        };
        let secrets =
            Secrets { cipher: derive("cipher"), nonce: derive("nonce"), digest: derive("digest") };
        let [a, b, c, d, ..] = *derive("mark");
        Ok(Self { inner: Arc::new(Inner { id, secrets, mark: [a, b, c, d] }) })
    }

    /// The key with this id, as 64 hexadecimal digits. Blanks around them are ignored.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn from_hex(id: impl Into<String>, digits: &str) -> Result<Self, KeyError> {
        let (pairs, []) = digits.trim().as_bytes().as_chunks::<2>() else {
            return Err(KeyError::Hex);
        };
        let digit =
            |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let mut secret = Zeroizing::new([0; 32]);
        if pairs.len() != secret.len() {
            return Err(KeyError::Hex);
        }
        for (byte, [high, low]) in secret.iter_mut().zip(pairs) {
            let (high, low) = digit(*high).zip(digit(*low)).ok_or(KeyError::Hex)?;
            *byte = high << 4 | low;
        }
        Self::new(id, *secret)
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.inner.id
    }

    pub(super) fn secrets(&self) -> &Secrets {
        &self.inner.secrets
    }

    /// Distinguishes it from other keys with its id. It shows nothing of the secret.
    pub(super) fn mark(&self) -> [u8; 4] {
        self.inner.mark
    }
}

/// Its id.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.inner.id)
    }
}

/// The key that encrypts, and those that decrypt what was encrypted before.
///
/// To replace a key, give all processes the new one with [`also`](Self::also); when all have it, make it the
/// current one, and keep the old one with `also` as long as sessions remain that were written with it.
///
/// ```
/// use harness_store::{Key, Keys};
/// # let (new, old) = (Key::new("2026-11", [1; 32])?, Key::new("2025-03", [2; 32])?);
///
/// let keys = Keys::new(new).also(old);
/// assert_eq!(keys.current().id(), "2026-11");
/// # Ok::<(), harness_store::KeyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Keys {
    current: Key,
    old: Vec<Key>,
}

impl Keys {
    /// Encrypts and decrypts with `current`.
    #[must_use]
    pub fn new(current: Key) -> Self {
        Self { current, old: Vec::new() }
    }

    /// Also decrypts what was encrypted with `key`.
    #[must_use]
    pub fn also(mut self, key: Key) -> Self {
        self.old.push(key);
        self
    }

    /// The key that encrypts.
    #[must_use]
    pub fn current(&self) -> &Key {
        &self.current
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.current).chain(&self.old)
    }
}
