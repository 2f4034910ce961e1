//! What the output of the derives may call. Not part of the API.

pub use serde;
pub use typed_builder;

use std::fmt;

use serde::{Deserialize, Deserializer};

/// Decodes a field of an update that is there, so that `null` is a value and
/// only a missing field means "not set".
pub fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
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
