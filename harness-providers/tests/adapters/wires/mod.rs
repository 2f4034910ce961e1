//! How the servers of the vendors speak, written to their published references.

#[cfg(feature = "anthropic")]
pub(crate) mod anthropic;

use serde_json::Value;

/// A server-sent event without a name.
#[allow(dead_code)]
pub(crate) fn data(json: &Value) -> String {
    format!("data: {json}\n\n")
}
