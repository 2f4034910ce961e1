//! Hashes that identify interrupts, answers and inputs.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::InterruptId;
use crate::step::Place;

/// The SHA-256 of a JSON value, as 64 hexadecimal digits. Map keys are hashed in sorted order, so
/// equal values have equal digests.
///
/// ```
/// use harness::session::Digest;
/// use serde_json::json;
///
/// assert_eq!(Digest::of(&json!({"a": 1, "b": 2})), Digest::of(&json!({"b": 2, "a": 1})));
/// assert_ne!(Digest::of(&json!(1)), Digest::of(&json!("1")));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// The digest of a value.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        Self(hex(&sha256([value.to_string()])))
    }

    /// The 64 digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({})", self.0)
    }
}

/// A secret of one session: without it, a short question cannot be guessed from its id.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Salt(String);

impl Salt {
    pub(crate) fn random() -> Self {
        Self(uuid::Uuid::new_v4().simple().to_string())
    }

    /// Distinguishes the session from others that had its id, and says nothing of the salt.
    pub(crate) fn incarnation(&self) -> String {
        hex(&sha256(["incarnation", &self.0])[..8])
    }

    /// The id of an interrupt: a hash of its place, its question and its answer schema, so that an
    /// answer to one is never applied to another. It includes the attempt: a step that repeats a
    /// question, after another one under the same key, needs another answer.
    pub(crate) fn interrupt_id(
        &self,
        place: Place,
        key: Option<&str>,
        name: &str,
        question: &Value,
        answer_schema: &Value,
    ) -> InterruptId {
        let Place { position, item, attempt, step: _ } = place;
        let asked =
            serde_json::json!([position.0, item, attempt, key, name, question, answer_schema]);
        let asked = asked.to_string();
        // The salt has a fixed length, so the concatenation is unambiguous.
        let hash = sha256([&self.0, &asked]);
        InterruptId::new(format!("{position}-{}", hex(&hash[..12])))
    }
}

impl fmt::Debug for Salt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Salt(..)")
    }
}

fn sha256(parts: impl IntoIterator<Item = impl AsRef<[u8]>>) -> [u8; 32] {
    let mut hash = hmac_sha256::Hash::new();
    parts.into_iter().for_each(|part| hash.update(part));
    hash.finalize()
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a `String` does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
