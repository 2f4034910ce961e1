//! Encrypting bytes for one place, and decrypting them there.
//!
//! ```text
//! format  length of id  id  mark of the key  nonce  check  encrypted bytes, tag
//! 1       1             ..  4                24     4      ..               16
//! ```
//!
//! The check is a hash of what precedes it. It proves nothing, and distinguishes damage from a key that
//! is not at hand.

use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hmac_sha256::{HMAC, Hash};

use super::key::{Key, Keys};

/// Begins what is encrypted in the first format. No JSON begins so.
const FORMAT: u8 = 0xE1;
const NONCE: usize = 24;
const CHECK: usize = 4;

/// Where bytes belong. They can be decrypted nowhere else.
pub(super) struct Place(Vec<u8>);

impl Place {
    /// The place of this kind that the parts name.
    pub(super) fn new(kind: &str, parts: &[&[u8]]) -> Self {
        let mut place = Vec::with_capacity(64);
        for part in std::iter::once(&kind.as_bytes()).chain(parts) {
            // With their lengths, other parts never make the same bytes.
            place.extend((part.len() as u64).to_le_bytes());
            place.extend(*part);
        }
        Self(place)
    }
}

/// Why bytes were not decrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DecryptError {
    /// They are not encrypted.
    Plain,
    /// They are damaged, or from another place.
    Damaged,
    /// The key with this id is not at hand.
    Missing(String),
    /// The key at hand with this id is another one.
    Wrong(String),
}

impl Keys {
    pub(super) fn encrypt(&self, place: &Place, bytes: &[u8]) -> Vec<u8> {
        let key = self.current();
        let nonce = nonce(key, place, bytes);
        let mut encrypted = Vec::with_capacity(1 + 1 + 255 + 4 + NONCE + CHECK + bytes.len() + 16);
        encrypted.push(FORMAT);
        // `Key::new` has checked the length.
        encrypted.push(u8::try_from(key.id().len()).unwrap_or(u8::MAX));
        encrypted.extend(key.id().as_bytes());
        encrypted.extend(key.mark());
        encrypted.extend(nonce);
        encrypted.extend(check(&encrypted));
        let payload = Payload { msg: bytes, aad: &place.0 };
        // Only 256 GiB at once are too many, and no such batch gets here.
        encrypted.extend(cipher(key).encrypt(&XNonce::from(nonce), payload).unwrap_or_default());
        encrypted
    }

    pub(super) fn decrypt(&self, place: &Place, encrypted: &[u8]) -> Result<Vec<u8>, DecryptError> {
        let Some((&FORMAT, rest)) = encrypted.split_first() else {
            return Err(DecryptError::Plain);
        };
        let header = Header::read(rest).ok_or(DecryptError::Damaged)?;
        let end = encrypted.len() - header.bytes.len();
        if encrypted.get(..end - CHECK).map(check) != Some(header.check) {
            return Err(DecryptError::Damaged);
        }
        let mut named = self.all().filter(|key| key.id().as_bytes() == header.id).peekable();
        let id = || String::from_utf8_lossy(header.id).into_owned();
        if named.peek().is_none() {
            return Err(DecryptError::Missing(id()));
        }
        let Some(key) = named.find(|key| key.mark() == header.mark) else {
            return Err(DecryptError::Wrong(id()));
        };
        let payload = Payload { msg: header.bytes, aad: &place.0 };
        cipher(key).decrypt(&XNonce::from(header.nonce), payload).map_err(|_| DecryptError::Damaged)
    }

    /// What stands for a digest in its place: it is equal for equal digests, and shows nothing of a
    /// value that can be guessed.
    pub(super) fn digest(&self, place: &Place, digest: &str) -> String {
        let mut mac = HMAC::new(self.current().secrets().digest.as_slice());
        mac.update((place.0.len() as u64).to_le_bytes());
        mac.update(&place.0);
        mac.update(digest);
        mac.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

struct Header<'a> {
    id: &'a [u8],
    mark: [u8; 4],
    nonce: [u8; NONCE],
    check: [u8; CHECK],
    bytes: &'a [u8],
}

impl<'a> Header<'a> {
    fn read(rest: &'a [u8]) -> Option<Self> {
        let (&length, rest) = rest.split_first()?;
        let (id, rest) = rest.split_at_checked(usize::from(length))?;
        let (&mark, rest) = rest.split_first_chunk()?;
        let (&nonce, rest) = rest.split_first_chunk()?;
        let (&check, bytes) = rest.split_first_chunk()?;
        Some(Self { id, mark, nonce, check, bytes })
    }
}

fn cipher(key: &Key) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new((&*key.secrets().cipher).into())
}

fn nonce(key: &Key, place: &Place, bytes: &[u8]) -> [u8; NONCE] {
    let mut mac = HMAC::new(key.secrets().nonce.as_slice());
    mac.update((place.0.len() as u64).to_le_bytes());
    mac.update(&place.0);
    mac.update(bytes);
    std::array::from_fn({
        let mac = mac.finalize();
        move |at| mac[at]
    })
}

fn check(header: &[u8]) -> [u8; CHECK] {
    let [a, b, c, d, ..] = Hash::hash(header);
    [a, b, c, d]
}
