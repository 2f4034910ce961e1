//! Whether a value is the same after it was stored.

use std::fmt::Debug;

use crate::state::{EncodeError, Stored, of_json, to_json};
use crate::text::bounded;

/// How many bytes of a line an error shows.
const MAX_LINE: usize = 256;

/// Checks that a state, or another stored value, is what its stored form decodes as.
///
/// The derive refuses serde options that lose a field of the state, but it does not see into the types
/// of the fields, and no encoder can: what `#[serde(skip)]` omits there is the default after a resume.
/// Only a comparison shows it. Test a value in which every field differs from its default.
///
/// ```
/// use harness::testing::survives_storage;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
/// struct Page {
///     url: String,
///     #[serde(skip)]
///     visits: u32,
/// }
///
/// survives_storage(&Page { url: "/".into(), visits: 0 })?;
/// let lost = survives_storage(&Page { url: "/".into(), visits: 7 }).unwrap_err();
/// assert_eq!(
///     lost.to_string(),
///     "the stored form loses data: `visits: 7,` reads back as `visits: 0,` (store the field; what \
///      is not stored belongs in the context)"
/// );
/// # Ok::<(), harness::testing::LostInStorage>(())
/// ```
///
/// # Errors
/// The value does not encode, its JSON does not decode, or it decodes as another value.
pub fn survives_storage<T>(value: &T) -> Result<(), LostInStorage>
where
    T: Stored + PartialEq + Debug,
{
    let json = to_json(value).map_err(LostInStorage::NotEncoded)?;
    let after: T = of_json(json).map_err(LostInStorage::NotDecoded)?;
    if after == *value {
        return Ok(());
    }
    let [before, after] = [value, &after].map(|value| format!("{value:#?}"));
    let differ = before.lines().zip(after.lines()).find(|(before, after)| before != after);
    let (before, after) = differ.unwrap_or((&before, &after));
    let [before, after] = [before, after].map(|line| bounded(line.trim().to_owned(), MAX_LINE));
    Err(LostInStorage::Changed { before, after })
}

/// A value that is not the same after it was stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LostInStorage {
    /// The value does not encode.
    #[error("the value does not encode")]
    NotEncoded(#[source] EncodeError),
    /// The JSON of the value does not decode.
    #[error("the stored form of the value does not decode (give omitted fields a `default`)")]
    NotDecoded(#[source] serde_json::Error),
    /// The value decodes as another one.
    #[error(
        "the stored form loses data: `{before}` reads back as `{after}` (store the field; what is \
         not stored belongs in the context)"
    )]
    #[non_exhaustive]
    Changed {
        /// The first line that differs in the `Debug` form of the value.
        before: String,
        /// The same line after the value was stored.
        after: String,
    },
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Inner {
        #[serde(skip_serializing)]
        lost: Vec<u8>,
        kept: u8,
    }

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Outer {
        inner: Vec<Inner>,
    }

    #[test]
    fn reports_what_does_not_decode_or_encode() {
        let value = Outer { inner: vec![Inner::default()] };
        assert!(matches!(survives_storage(&value), Err(LostInStorage::NotDecoded(_))));
        assert!(matches!(survives_storage(&f64::NAN), Err(LostInStorage::NotEncoded(_))));
        assert!(matches!(survives_storage(&Some(None::<u8>)), Err(LostInStorage::NotEncoded(_))));
        assert!(survives_storage(&Outer::default()).is_ok());
    }
}
