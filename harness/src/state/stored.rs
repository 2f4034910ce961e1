use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::encode::{EncodeError, encode, encode_update};

/// A type that a log can store as JSON. Every type with serde's two traits is one.
///
/// It exists for its message. The compiler checks the supertraits of a trait one by one, so serde's
/// would be many errors; this bound is one, with the remedy. Generic code that needs serde's traits
/// of a stored type adds them to its bounds.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored",
    label = "`{Self}` is not `Serialize` and `Deserialize`",
    note = "write `#[derive(Serialize, Deserialize)]` above `{Self}`"
)]
pub trait Stored: Sized {
    /// The type itself, as a type with serde's traits.
    #[doc(hidden)]
    type Json: Serialize + DeserializeOwned;

    #[doc(hidden)]
    fn json(&self) -> &Self::Json;

    #[doc(hidden)]
    fn from_json(json: Self::Json) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> Stored for T {
    type Json = T;

    fn json(&self) -> &T {
        self
    }

    fn from_json(json: T) -> T {
        json
    }
}

pub(crate) fn to_json<T: Stored>(value: &T) -> Result<Value, EncodeError> {
    encode(value.json())
}

/// As [`to_json`], for an update.
pub(crate) fn update_to_json<T: Stored>(update: &T) -> Result<Value, EncodeError> {
    encode_update(update.json())
}

pub(crate) fn of_json<'de, T: Stored, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    T::Json::deserialize(from).map(T::from_json)
}
