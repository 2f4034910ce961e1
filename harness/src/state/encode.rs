//! JSON encoding that refuses lossy values.
//!
//! `serde_json` writes `NaN` and the infinities as `null`, which decodes as another value or not at
//! all, and `Some(None)` as `null`, which decodes as `None`. [`encode`] wraps the serializer of
//! `serde_json::to_value` and refuses those values where it meets them, so the check costs no pass of
//! its own.

use std::cell::Cell;
use std::fmt::{self, Display};
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::ser::{self, Error as _};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::text::words;

/// Encodes a value as JSON, and refuses values that JSON cannot represent.
///
/// ```
/// use harness::state::encode;
///
/// assert_eq!(encode(&[1.5])?, serde_json::json!([1.5]));
/// assert!(encode(&[f64::NAN]).unwrap_err().is_not_finite());
/// # Ok::<(), harness::state::EncodeError>(())
/// ```
///
/// # Errors
///
/// Fails for a float that is not finite, for a `Some` of a value that is `null` in JSON, for a map
/// key that is not a string, a number or a bool, for an integer beyond 64 bits, and for an error or
/// panic of the type's own `Serialize`.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Value, EncodeError> {
    encode_checked(value, Within::Value)
}

/// Encodes an update: a field that is set to `null` may be `Some(None)` in it.
pub(super) fn encode_update<T: Serialize + ?Sized>(value: &T) -> Result<Value, EncodeError> {
    encode_checked(value, Within::Update)
}

fn encode_checked<T: Serialize + ?Sized>(value: &T, within: Within) -> Result<Value, EncodeError> {
    let found = Cell::new(None);
    let checked = Checked { value, found: &found, within };
    let encoded = catch_unwind(AssertUnwindSafe(|| serde_json::to_value(&checked)));
    let encoded =
        encoded.map_err(|panic| EncodeError::custom(format!("panicked: {}", words(&*panic))))?;
    encoded.map_err(|error| match found.get() {
        Some(Lossy::Float(float)) => EncodeError(Kind::NotFinite(float)),
        Some(Lossy::SomeNull) => EncodeError(Kind::SomeNull),
        None => EncodeError(Kind::Json(error)),
    })
}

/// A value that JSON cannot represent.
#[derive(Debug)]
pub struct EncodeError(Kind);

#[derive(Debug)]
enum Kind {
    NotFinite(f64),
    SomeNull,
    Json(serde_json::Error),
}

impl EncodeError {
    /// Whether the value held a `Some` of a value that is `null` in JSON, such as `Some(None)`.
    #[must_use]
    pub fn is_some_null(&self) -> bool {
        matches!(self.0, Kind::SomeNull)
    }

    /// Whether the value held `NaN` or an infinity.
    #[must_use]
    pub fn is_not_finite(&self) -> bool {
        matches!(self.0, Kind::NotFinite(_))
    }

    pub(super) fn custom(message: impl Display) -> Self {
        Self(Kind::Json(serde_json::Error::custom(message)))
    }
}

impl Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::NotFinite(float) => {
                write!(f, "JSON has no number for `{float}` (store an `Option` or another type)")
            }
            Kind::SomeNull => f.write_str(
                "`Some` of a value that is `null` in JSON, such as `Some(None)`, reads back as \
                 `None` (use an enum with a variant for each case)",
            ),
            Kind::Json(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for EncodeError {}

/// A value that JSON cannot represent.
#[derive(Clone, Copy)]
enum Lossy {
    Float(f64),
    SomeNull,
}

/// What a value is directly part of.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    /// A `Some`, so that `null` would read back as `None`.
    Some,
    /// An update, whose fields may be set to `null`.
    Update,
    /// Anything else.
    Value,
}

/// A value that is serialized through [`Finite`].
struct Checked<'a, T: ?Sized> {
    value: &'a T,
    found: &'a Cell<Option<Lossy>>,
    within: Within,
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + ?Sized> Serialize for Checked<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { found, within, .. } = *self;
        self.value.serialize(Finite { inner: serializer, found, within })
    }
}

/// Forwards everything to `inner` except values that JSON cannot represent. The first of those is
/// kept in `found`.
struct Finite<'a, S> {
    inner: S,
    found: &'a Cell<Option<Lossy>>,
    within: Within,
}

impl<'a, S> Finite<'a, S> {
    fn check<E: ser::Error>(&self, float: f64) -> Result<(), E> {
        if float.is_finite() {
            return Ok(());
        }
        self.found.set(Some(Lossy::Float(float)));
        Err(E::custom("not finite"))
    }

    fn check_null<E: ser::Error>(&self) -> Result<(), E> {
        if self.within != Within::Some {
            return Ok(());
        }
        self.found.set(Some(Lossy::SomeNull));
        Err(E::custom("null in `Some`"))
    }

    fn checked<'v, T: ?Sized>(&self, value: &'v T) -> Checked<'v, T>
    where
        'a: 'v,
    {
        self.part(value, Within::Value)
    }

    fn part<'v, T: ?Sized>(&self, value: &'v T, within: Within) -> Checked<'v, T>
    where
        'a: 'v,
    {
        Checked { value, found: self.found, within }
    }
}

macro_rules! hand_on {
    ($($method:ident($type:ty);)*) => {$(
        fn $method(self, value: $type) -> Result<S::Ok, S::Error> {
            self.inner.$method(value)
        }
    )*};
}

macro_rules! open {
    ($($method:ident($($name:ident: $type:ty),*) -> $compound:ident;)*) => {$(
        fn $method(self, $($name: $type),*) -> Result<Self::$compound, S::Error> {
            let inner = self.inner.$method($($name),*)?;
            Ok(Finite { inner, found: self.found, within: self.within })
        }
    )*};
}

impl<'a, S: Serializer> Serializer for Finite<'a, S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Finite<'a, S::SerializeSeq>;
    type SerializeTuple = Finite<'a, S::SerializeTuple>;
    type SerializeTupleStruct = Finite<'a, S::SerializeTupleStruct>;
    type SerializeTupleVariant = Finite<'a, S::SerializeTupleVariant>;
    type SerializeMap = Finite<'a, S::SerializeMap>;
    type SerializeStruct = Finite<'a, S::SerializeStruct>;
    type SerializeStructVariant = Finite<'a, S::SerializeStructVariant>;

    hand_on! {
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_i128(i128);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
        serialize_u128(u128);
        serialize_char(char);
        serialize_str(&str);
        serialize_bytes(&[u8]);
    }

    open! {
        serialize_seq(len: Option<usize>) -> SerializeSeq;
        serialize_tuple(len: usize) -> SerializeTuple;
        serialize_tuple_struct(name: &'static str, len: usize) -> SerializeTupleStruct;
        serialize_tuple_variant(
            name: &'static str, index: u32, variant: &'static str, len: usize
        ) -> SerializeTupleVariant;
        serialize_map(len: Option<usize>) -> SerializeMap;
        serialize_struct(name: &'static str, len: usize) -> SerializeStruct;
        serialize_struct_variant(
            name: &'static str, index: u32, variant: &'static str, len: usize
        ) -> SerializeStructVariant;
    }

    fn serialize_f32(self, value: f32) -> Result<S::Ok, S::Error> {
        self.check(f64::from(value))?;
        self.inner.serialize_f32(value)
    }

    fn serialize_f64(self, value: f64) -> Result<S::Ok, S::Error> {
        self.check(value)?;
        self.inner.serialize_f64(value)
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.check_null()?;
        self.inner.serialize_none()
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.check_null()?;
        self.inner.serialize_unit()
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<S::Ok, S::Error> {
        self.check_null()?;
        self.inner.serialize_unit_struct(name)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        let within = match self.within {
            Within::Update => Within::Value,
            Within::Some | Within::Value => Within::Some,
        };
        let checked = self.part(value, within);
        self.inner.serialize_some(&checked)
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit_variant(name, index, variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        // A newtype is its value in JSON.
        let checked = self.part(value, self.within);
        self.inner.serialize_newtype_struct(name, &checked)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let checked = self.checked(value);
        self.inner.serialize_newtype_variant(name, index, variant, &checked)
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.inner.collect_str(value)
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! sequence {
    ($($trait:ident::$method:ident;)*) => {$(
        impl<S: ser::$trait> ser::$trait for Finite<'_, S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
                let checked = self.checked(value);
                self.inner.$method(&checked)
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.inner.end()
            }
        }
    )*};
}

sequence! {
    SerializeSeq::serialize_element;
    SerializeTuple::serialize_element;
    SerializeTupleStruct::serialize_field;
    SerializeTupleVariant::serialize_field;
}

macro_rules! record {
    ($($trait:ident;)*) => {$(
        impl<S: ser::$trait> ser::$trait for Finite<'_, S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), S::Error> {
                let within = match self.within {
                    Within::Update => Within::Update,
                    Within::Some | Within::Value => Within::Value,
                };
                let checked = self.part(value, within);
                self.inner.serialize_field(key, &checked)
            }

            fn skip_field(&mut self, key: &'static str) -> Result<(), S::Error> {
                self.inner.skip_field(key)
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.inner.end()
            }
        }
    )*};
}

record! {
    SerializeStruct;
    SerializeStructVariant;
}

impl<S: ser::SerializeMap> ser::SerializeMap for Finite<'_, S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), S::Error> {
        let checked = self.checked(key);
        self.inner.serialize_key(&checked)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        let checked = self.checked(value);
        self.inner.serialize_value(&checked)
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.inner.end()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[derive(Serialize)]
    enum Shape {
        Point,
        Circle(f32),
        Box { width: f64, height: f64 },
        Line(f64, f64),
    }

    #[test]
    fn agrees_with_serde_json_on_what_json_can_hold() {
        let shapes = (
            [Shape::Point, Shape::Circle(0.5)],
            Shape::Box { width: 1.0, height: -0.25 },
            Shape::Line(1e300, 0.1),
            BTreeMap::from([(3, Some('x')), (4, None)]),
            ((), "text", 7_i128),
        );
        assert_eq!(encode(&shapes).unwrap(), serde_json::to_value(&shapes).unwrap());
    }

    #[test]
    fn refuses_floats_that_are_not_finite_wherever_they_are() {
        let values: [Result<Value, EncodeError>; 6] = [
            encode(&f64::NAN),
            encode(&f32::INFINITY),
            encode(&Shape::Circle(f32::NAN)),
            encode(&Shape::Box { width: 0.0, height: f64::NEG_INFINITY }),
            encode(&Shape::Line(0.0, f64::NAN)),
            encode(&BTreeMap::from([("k", vec![Some(f64::NAN)])])),
        ];
        for value in values {
            assert!(value.unwrap_err().is_not_finite());
        }
    }

    #[test]
    fn refuses_null_in_some_wherever_it_is() {
        #[derive(Serialize)]
        struct New<T>(T);
        #[derive(Serialize)]
        struct Unit;
        #[derive(Serialize)]
        struct Update {
            set: Option<Option<u8>>,
            new: Option<New<Option<u8>>>,
            deep: Option<Vec<Option<Option<u8>>>>,
        }

        let values: [Result<Value, EncodeError>; 7] = [
            encode(&Some(None::<u8>)),
            encode(&vec![Some(Some(None::<u8>))]),
            encode(&Some(())),
            encode(&Some(Unit)),
            encode(&Some(New(None::<u8>))),
            encode(&New(Some(json!(null)))),
            encode(&BTreeMap::from([("k", (1, Some(None::<u8>)))])),
        ];
        for value in values {
            assert!(value.unwrap_err().is_some_null());
        }
        let kept = (Some(vec![None, Some(1)]), Some(Some(1)), None::<Option<u8>>, ((), Unit));
        assert_eq!(encode(&kept).unwrap(), serde_json::to_value(&kept).unwrap());

        // An update sets a field to `null`, but its values lose nothing either.
        let set = Update { set: Some(None), new: Some(New(None)), deep: None };
        assert_eq!(encode_update(&set).unwrap(), serde_json::to_value(&set).unwrap());
        let lost = Update { set: None, new: None, deep: Some(vec![Some(None)]) };
        assert!(encode_update(&lost).unwrap_err().is_some_null());
    }

    #[test]
    fn names_the_remedy() {
        assert_eq!(
            encode(&f64::NAN).unwrap_err().to_string(),
            "JSON has no number for `NaN` (store an `Option` or another type)"
        );
        let error = encode(&BTreeMap::from([(vec![1], 2)])).unwrap_err();
        assert!(!error.is_not_finite());
        assert_eq!(error.to_string(), "key must be a string");
        assert_eq!(encode(&json!(null)).unwrap(), json!(null));
    }
}
