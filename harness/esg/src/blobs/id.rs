//! Ids of values, and values small enough to be kept inline.
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::Fingerprint;

/// Identity of a stored value: a hash of its bytes under the store's key. It reveals nothing about
/// the value without the key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BlobId(pub(super) Fingerprint);

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The largest inline value, in bytes.
pub(super) const INLINE: usize = 256;

/// Where a value is: inline if it is small, or in a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StoredValue {
    /// Inline: at most 256 bytes. Hex in text formats.
    Inline(#[serde(with = "hex")] Arc<[u8]>),
    /// In the store, under this id.
    Blob(BlobId),
}

mod hex {
    use std::fmt::Write as _;
    use std::sync::Arc;

    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        bytes: &Arc<[u8]>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(bytes.len() * 2);
        for byte in &**bytes {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        serializer.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<[u8]>, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|d| u8::try_from(d).ok());
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? * 16 + digit(*low)?));
        match bytes.collect::<Option<Arc<[u8]>>>() {
            Some(bytes) if rest.is_empty() => Ok(bytes),
            _ => Err(D::Error::custom("expected an even number of hex digits")),
        }
    }
}
