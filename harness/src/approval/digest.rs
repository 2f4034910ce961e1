//! What identifies a tool, and a call of it.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::llm::ToolSpec;

/// The greatest integer up to which every one has a number of its own in canonical JSON.
const EXACT: u64 = 1 << 53;

/// The SHA-256 of canonical JSON ([RFC 8785](https://www.rfc-editor.org/rfc/rfc8785)), as 64
/// hexadecimal digits.
///
/// It does not depend on how the JSON was written. Integers beyond 2^53, which canonical JSON rounds,
/// are hashed beside it with all their digits.
///
/// ```
/// use harness::approval::Sha256;
/// use serde_json::json;
///
/// let one = Sha256::of(&json!({"to": "sam", "cents": 100}));
/// assert_eq!(one, Sha256::of(&json!({"cents": 100.0, "to": "sam"})));
/// assert_ne!(one, Sha256::of(&json!({"cents": 101, "to": "sam"})));
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sha256(String);

impl Sha256 {
    /// The digest of a value.
    pub fn of(value: &Value) -> Self {
        let mut large = Map::new();
        large_integers("", value, &mut large);
        let mut hash = hmac_sha256::Hash::new();
        hash.update(canonical(value));
        if !large.is_empty() {
            // No JSON continues like this.
            hash.update("\0");
            hash.update(canonical(&Value::Object(large)));
        }
        let mut digits = String::with_capacity(64);
        for byte in hash.finalize() {
            use fmt::Write as _;
            // Writing to a `String` does not fail.
            let _ = write!(digits, "{byte:02x}");
        }
        Self(digits)
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The digest of what a tool is: its name, its description, its schema and its class. Another
    /// version of a tool is another tool.
    pub(super) fn of_tool(spec: &ToolSpec) -> Self {
        Self::of(&json!({
            "name": spec.name,
            "description": spec.description,
            "input_schema": spec.input_schema,
            "effect": spec.effect,
        }))
    }

    /// The digest of a call of a tool.
    pub(super) fn of_call(tool: &Self, arguments: &Value) -> Self {
        Self::of(&json!({"tool": tool, "arguments": arguments}))
    }
}

fn canonical(value: &Value) -> Vec<u8> {
    // A JSON value has only finite numbers, and keys that are texts: it always has a canonical form.
    serde_json_canonicalizer::to_vec(value).unwrap_or_else(|_| value.to_string().into_bytes())
}

/// The integers of a value that canonical JSON rounds, by their JSON pointers.
fn large_integers(at: &str, value: &Value, found: &mut Map<String, Value>) {
    match value {
        Value::Number(number) => {
            let size = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            if size.is_some_and(|size| size > EXACT) {
                found.insert(at.to_owned(), number.to_string().into());
            }
        }
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                large_integers(&format!("{at}/{n}"), item, found);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                large_integers(&format!("{at}/{name}"), field, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sha256({})", self.0)
    }
}

#[cfg(test)]
mod tests;
