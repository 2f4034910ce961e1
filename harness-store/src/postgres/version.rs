//! The version of the tables and functions.

use harness::store::StoreError;

/// The last version.
pub(crate) const FORMAT: u32 = 3;

/// The name of a schema in a statement.
pub(crate) fn quoted(schema: &str) -> String {
    format!("\"{}\"", schema.replace('"', "\"\""))
}

pub(crate) fn newer(found: u32) -> StoreError {
    StoreError::NewerFormat { found, known: FORMAT }
}
