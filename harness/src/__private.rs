//! What the output of the derives may call. Not part of the API.

pub use async_trait::async_trait;
pub use serde;
pub use typed_builder;

use std::fmt;

/// The schema of the arguments of a tool.
pub fn schema<A: schemars::JsonSchema>() -> serde_json::Value {
    crate::llm::arguments_schema::<A>()
}

/// Prints an update as its name and the fields it sets.
///
/// Field types need no `Debug`, so their values are not shown.
pub fn fmt_update(f: &mut fmt::Formatter<'_>, name: &str, fields: &[(&str, bool)]) -> fmt::Result {
    let mut set = fields.iter().filter(|(_, set)| *set).peekable();
    f.write_str(name)?;
    if set.peek().is_none() {
        return f.write_str(" {}");
    }
    for (index, (field, _)) in set.enumerate() {
        f.write_str(if index == 0 { " { " } else { ", " })?;
        f.write_str(field)?;
    }
    f.write_str(" }")
}
