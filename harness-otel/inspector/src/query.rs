//! Addresses.

use harness::Seq;

/// The address of a session's page.
pub(crate) fn session(id: &str) -> String {
    with("/session", &[("id", id)])
}

/// The address of a session's state after an entry.
pub(crate) fn state(id: &str, seq: Seq) -> String {
    with("/session/state", &[("id", id), ("seq", &seq.to_string())])
}

/// A path with a query.
pub(crate) fn with(path: &str, query: &[(&str, &str)]) -> String {
    let mut text = form_urlencoded::Serializer::new(String::new());
    text.extend_pairs(query);
    format!("{path}?{}", text.finish())
}

/// Bytes as text for an address.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(byte).collect()
}
