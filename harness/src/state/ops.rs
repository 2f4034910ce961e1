//! Records what reducers do.
//!
//! [`State::apply`](super::State::apply) receives an [`Ops`]. When it is off, each call is one
//! branch, and nothing is encoded or allocated.

use std::borrow::Cow;
use std::fmt;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::encode::{EncodeError, encode};
use super::op::{Op, Path, Segment};

/// Records what reducers do while an update is applied.
///
/// ```
/// use harness::state::Ops;
///
/// let mut ops = Ops::on();
/// ops.field("lines").push("hi");
/// assert_eq!(ops.finish()?.len(), 1);
///
/// let mut ops = Ops::off();
/// ops.field("lines").push("hi");
/// assert_eq!(ops.finish()?.len(), 0);
/// # Ok::<(), harness::state::OpsError>(())
/// ```
#[derive(Debug, Default)]
pub struct Ops {
    is_on: bool,
    ops: Vec<Op>,
    error: Option<OpsError>,
}

impl Ops {
    /// A recorder that is off. It records nothing and costs nothing.
    #[must_use]
    pub fn off() -> Self {
        Self::default()
    }

    /// A recorder that keeps every operation.
    #[must_use]
    pub fn on() -> Self {
        Self { is_on: true, ..Self::default() }
    }

    /// Whether operations are recorded.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// The recorder of one field, by its stored name.
    pub fn field(&mut self, name: &'static str) -> FieldOps<'_> {
        FieldOps { ops: self, place: Some(Place { above: None, segment: Here::Field(name) }) }
    }

    /// The operations, in the order they were recorded.
    ///
    /// # Errors
    ///
    /// The first value that failed to encode, or the first update that was
    /// [refused](FieldOps::refuse), with its path.
    pub fn finish(self) -> Result<Vec<Op>, OpsError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.ops),
        }
    }

    /// The recorder of a value whose path is not known yet.
    pub(super) fn root(&mut self) -> FieldOps<'_> {
        FieldOps { ops: self, place: None }
    }
}

/// Records operations on one field or on a path below it.
pub struct FieldOps<'a> {
    ops: &'a mut Ops,
    place: Option<Place<'a>>,
}

/// A path that needs no allocation: a list from the innermost segment upwards.
#[derive(Clone, Copy)]
struct Place<'a> {
    above: Option<&'a Place<'a>>,
    segment: Here<'a>,
}

#[derive(Clone, Copy)]
enum Here<'a> {
    Field(&'static str),
    Key(&'a str),
    Index(usize),
}

impl FieldOps<'_> {
    /// Whether operations are recorded.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.ops.is_on()
    }

    /// The recorder of the value under `key` in this map or struct.
    pub fn key<'b>(&'b mut self, key: &'b str) -> FieldOps<'b> {
        FieldOps {
            ops: &mut *self.ops,
            place: Some(Place { above: self.place.as_ref(), segment: Here::Key(key) }),
        }
    }

    /// The recorder of the item at `index` of this list.
    pub fn index(&mut self, index: usize) -> FieldOps<'_> {
        FieldOps {
            ops: &mut *self.ops,
            place: Some(Place { above: self.place.as_ref(), segment: Here::Index(index) }),
        }
    }

    /// Sets the value to `value`.
    pub fn set<T: Serialize + ?Sized>(&mut self, value: &T) {
        self.record(|path| Ok(Op::Set { path, value: encode(value)? }));
    }

    /// Pushes an item onto the list.
    pub fn push<T: Serialize + ?Sized>(&mut self, value: &T) {
        self.record(|path| Ok(Op::Push { path, value: encode(value)? }));
    }

    /// Puts `value` under `key` into the map.
    pub fn put<K, V>(&mut self, key: &K, value: &V)
    where
        K: Serialize + ?Sized,
        V: Serialize + ?Sized,
    {
        self.record(|path| {
            let (key, value) = entry(key, value)?;
            Ok(Op::Put { path, key, value })
        });
    }

    /// Inserts a new member into the set. The set must not hold it yet.
    pub fn insert<T: Serialize + ?Sized>(&mut self, value: &T) {
        self.record(|path| Ok(Op::Insert { path, value: encode(value)? }));
    }

    /// Replaces the first item of the list whose field `key` equals that of `item`. If there is
    /// none, pushes `item`.
    pub fn upsert<T: Serialize + ?Sized>(&mut self, key: &'static str, item: &T) {
        self.record(|path| {
            let value = encode(item)?;
            if value.get(key).is_none() {
                return Err(EncodeError::custom(format_args!(
                    "item has no stored key `{key}` (add a field that is stored \
                     under that name)"
                )));
            }
            Ok(Op::Upsert { path, key: Cow::Borrowed(key), value })
        });
    }

    /// Removes `key` from the map.
    pub fn del<K: Serialize + ?Sized>(&mut self, key: &K) {
        self.record(|path| {
            let (key, _) = entry(key, &())?;
            Ok(Op::Del { path, key: Segment::Key(Cow::Owned(key)) })
        });
    }

    /// Removes the item at `index` from the list.
    pub fn del_at(&mut self, index: usize) {
        self.record(|path| Ok(Op::Del { path, key: Segment::Index(index) }));
    }

    /// Refuses the update: the step that made it fails with this reason, with and without a store, and none
    /// of its changes count. The value itself must not have changed.
    ///
    /// ```
    /// use harness::state::{FieldOps, Fold};
    ///
    /// /// A balance that is never negative.
    /// #[derive(serde::Serialize)]
    /// struct Balance { cents: u64 }
    ///
    /// impl Fold for Balance {
    ///     type Item = u64; // a payment
    ///
    ///     fn fold(&mut self, paid: u64, ops: &mut FieldOps<'_>) {
    ///         match self.cents.checked_sub(paid) {
    ///             Some(left) => {
    ///                 self.cents = left;
    ///                 ops.key("cents").set(&left);
    ///             }
    ///             None => ops.refuse(format_args!("{paid} is more than the {} there are", self.cents)),
    ///         }
    ///     }
    /// }
    /// ```
    pub fn refuse(&mut self, why: impl fmt::Display) {
        if self.ops.error.is_none() {
            let path = self.place.map(Place::path).unwrap_or_default();
            self.ops.error = Some(OpsError { path, cause: Cause::Refused(why.to_string()) });
        }
    }

    /// Appends operations that were recorded without a path, at this path.
    pub(super) fn adopt(&mut self, recorded: Ops) {
        if self.ops.error.is_some() {
            return;
        }
        let above = self.place.map(Place::path).unwrap_or_default();
        self.ops.ops.extend(recorded.ops.into_iter().map(|mut op| {
            let below = std::mem::take(op.path_mut());
            *op.path_mut() = below.below(&above);
            op
        }));
        self.ops.error = recorded
            .error
            .map(|error| OpsError { path: error.path.below(&above), cause: error.cause });
    }

    fn record(&mut self, op: impl FnOnce(Path) -> Result<Op, EncodeError>) {
        let ops = &mut *self.ops;
        if !ops.is_on || ops.error.is_some() {
            return;
        }
        let path = || self.place.map(Place::path).unwrap_or_default();
        match op(path()) {
            Ok(op) => {
                // Most steps record one.
                if ops.ops.is_empty() {
                    ops.ops.reserve_exact(1);
                }
                ops.ops.push(op);
            }
            Err(cause) => {
                ops.error = Some(OpsError { path: path(), cause: Cause::Encode(cause) });
            }
        }
    }
}

impl fmt::Debug for FieldOps<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.place.map(Place::path).unwrap_or_default();
        write!(f, "FieldOps({path})")
    }
}

impl Place<'_> {
    fn path(self) -> Path {
        // The common case: a field, whose path is one segment.
        let Some(above) = self.above else {
            return Path::of(self.segment.owned());
        };
        let mut segments = vec![self.segment.owned()];
        let mut here = Some(above);
        while let Some(place) = here {
            segments.push(place.segment.owned());
            here = place.above;
        }
        segments.reverse();
        segments.into_iter().collect()
    }
}

impl Here<'_> {
    fn owned(self) -> Segment {
        match self {
            Here::Field(name) => Segment::Key(Cow::Borrowed(name)),
            Here::Key(key) => Segment::Key(Cow::Owned(key.to_owned())),
            Here::Index(index) => Segment::Index(index),
        }
    }
}

/// Encodes a key and a value as an entry of a JSON map.
fn entry<K, V>(key: &K, value: &V) -> Result<(String, Value), EncodeError>
where
    K: Serialize + ?Sized,
    V: Serialize + ?Sized,
{
    struct Single<'a, K: ?Sized, V: ?Sized>(&'a K, &'a V);

    #[diagnostic::do_not_recommend]
    impl<K: Serialize + ?Sized, V: Serialize + ?Sized> Serialize for Single<'_, K, V> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(Some(1))?;
            map.serialize_entry(self.0, self.1)?;
            map.end()
        }
    }

    match encode(&Single(key, value))? {
        Value::Object(map) => map.into_iter().next(),
        _ => None,
    }
    .ok_or_else(|| EncodeError::custom("a map entry did not encode to one key and value"))
}

/// A field whose new value failed to encode, or whose reducer [refused](FieldOps::refuse) the update.
#[derive(Debug)]
pub struct OpsError {
    path: Path,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    Encode(EncodeError),
    Refused(String),
}

impl OpsError {
    /// The path of the value: the field, and the segments below it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The stored name of the field.
    #[must_use]
    pub fn field(&self) -> &str {
        match self.path.segments().first() {
            Some(Segment::Key(name)) => name,
            _ => "",
        }
    }

    /// Whether the value held `NaN` or an infinity.
    #[must_use]
    pub fn is_not_finite(&self) -> bool {
        matches!(&self.cause, Cause::Encode(cause) if cause.is_not_finite())
    }

    /// Whether the reducer of the field refused the update.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self.cause, Cause::Refused(_))
    }
}

impl fmt::Display for OpsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::Encode(_) => write!(f, "failed to encode field `{}`", self.path),
            Cause::Refused(why) => write!(f, "field `{}` refuses the update: {why}", self.path),
        }
    }
}

impl std::error::Error for OpsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            Cause::Encode(cause) => Some(cause),
            Cause::Refused(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn stored_form() {
        let mut ops = Ops::on();
        ops.field("turns").set(&3);
        ops.field("talk").index(3).key("outcome").set(&None::<u8>);
        ops.field("prices").put(&7, "x");
        ops.field("tags").insert("new");
        ops.field("rows").upsert("id", &json!({"id": 1}));
        ops.field("prices").del("7");
        ops.field("rows").del_at(0);
        let ops = ops.finish().unwrap();
        let stored = json!([
            {"set": {"p": ["turns"], "v": 3}},
            {"set": {"p": ["talk", 3, "outcome"], "v": null}},
            {"put": {"p": ["prices"], "k": "7", "v": "x"}},
            {"insert": {"p": ["tags"], "v": "new"}},
            {"upsert": {"p": ["rows"], "k": "id", "v": {"id": 1}}},
            {"del": {"p": ["prices"], "k": "7"}},
            {"del": {"p": ["rows"], "k": 0}},
        ]);
        assert_eq!(serde_json::to_value(&ops).unwrap(), stored);
        let text = stored.to_string();
        assert_eq!(serde_json::from_str::<Vec<Op>>(&text).unwrap(), ops);
        assert_eq!(ops[1].path().to_string(), "talk[3].outcome");
    }

    #[test]
    fn a_missing_value_is_not_null() {
        let error = serde_json::from_str::<Op>(r#"{"set":{"p":["a"]}}"#).unwrap_err();
        assert!(error.to_string().contains("missing field `v`"), "{error}");
    }

    #[test]
    fn keeps_the_first_value_that_fails_to_encode() {
        let mut ops = Ops::on();
        ops.field("a").set(&1);
        ops.field("b").index(2).set(&f64::NAN);
        ops.field("c").put(&[1, 2], &3);
        let error = ops.finish().unwrap_err();
        assert_eq!(error.field(), "b");
        assert!(error.is_not_finite());
        assert_eq!(error.to_string(), "failed to encode field `b[2]`");
    }

    #[test]
    fn an_upserted_item_needs_its_key() {
        let mut ops = Ops::on();
        ops.field("rows").upsert("id", &json!({"ID": 1}));
        let error = ops.finish().unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(
            cause,
            "item has no stored key `id` (add a field that is stored under that \
             name)"
        );
    }

    #[test]
    fn a_refusal_counts_while_off_too_and_the_first_one_is_kept() {
        for mut ops in [Ops::on(), Ops::off()] {
            ops.field("a").set(&1);
            ops.field("b").key("c").refuse("it is full");
            ops.field("d").refuse("it is closed");
            let error = ops.finish().unwrap_err();
            assert!(error.is_refused() && !error.is_not_finite());
            assert_eq!(error.to_string(), "field `b.c` refuses the update: it is full");
        }
    }

    #[test]
    fn off_encodes_nothing() {
        struct Never;
        impl Serialize for Never {
            fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                panic!("encoded while off");
            }
        }
        let mut ops = Ops::off();
        ops.field("a").set(&Never);
        ops.field("a").key("b").put("k", &Never);
        assert!(ops.finish().unwrap().is_empty());
    }
}
