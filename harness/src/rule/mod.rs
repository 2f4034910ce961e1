//! Conditions on the arguments of a tool call.
//!
//! A set of conditions answers two questions. [`Arguments::allow`] is strict: every argument is named
//! and known to hold, so a doubt allows nothing. [`Arguments::catch`] is wide: a condition that may
//! hold counts as held, so a doubt evades nothing.

mod path;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use path::{Under, under};

/// What an argument of a tool call has to be.
///
/// ```
/// use harness::approval::Condition;
/// use serde_json::json;
///
/// let stored = serde_json::to_value(Condition::under("/srv/files"))?;
/// assert_eq!(stored, json!({"under": "/srv/files"}));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Condition {
    /// This value.
    Equals(Value),
    /// One of these values.
    OneOf(Vec<Value>),
    /// This path, or one below it. Paths are compared as text: `..` is resolved, links are not
    /// followed. A rule that allows needs a path that is surely below, so one with a backslash, a
    /// control character or a `..` above its start never is.
    Under(String),
    /// Anything, also nothing.
    Any,
}

impl Condition {
    /// This value.
    pub fn equals(value: impl Into<Value>) -> Self {
        Self::Equals(value.into())
    }

    /// One of these values.
    pub fn one_of(values: impl IntoIterator<Item = impl Into<Value>>) -> Self {
        Self::OneOf(values.into_iter().map(Into::into).collect())
    }

    /// This path, or one below it.
    pub fn under(path: impl Into<String>) -> Self {
        Self::Under(path.into())
    }

    /// Whether it surely holds.
    fn holds(&self, value: Option<&Value>) -> bool {
        match (self, value) {
            (Self::Any, _) => true,
            (_, None) => false,
            (Self::Equals(expected), Some(value)) => expected == value,
            (Self::OneOf(several), Some(value)) => several.contains(value),
            (Self::Under(root), Some(Value::String(path))) => under(root, path) == Under::Yes,
            (Self::Under(_), Some(_)) => false,
        }
    }

    /// Whether it may hold.
    fn may_hold(&self, value: Option<&Value>) -> bool {
        match (self, value) {
            (Self::Any, _) => true,
            (_, None) => false,
            (Self::Equals(expected), Some(value)) => alike(expected, value),
            (Self::OneOf(several), Some(value)) => several.iter().any(|one| alike(one, value)),
            (Self::Under(root), Some(value)) => may_be_under(root, value),
        }
    }
}

/// Whether a value is a path that may be below `root`, or contains one.
fn may_be_under(root: &str, value: &Value) -> bool {
    match value {
        Value::String(path) => under(root, path) != Under::No,
        Value::Array(several) => several.iter().any(|value| may_be_under(root, value)),
        Value::Object(fields) => fields.values().any(|value| may_be_under(root, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether two values are equal to a tool, which may read `1.0` as `1`.
fn alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| alike(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let same = |(key, value)| other.get(key).is_some_and(|other| alike(value, other));
            one.len() == other.len() && one.iter().all(same)
        }
        (one, other) => one == other,
    }
}

/// Conditions on the arguments of a call, each under the JSON pointer of its argument.
///
/// A rule that allows names every argument: a call with an argument that no condition names does not
/// match. A condition on an object or a list names everything in it. Without conditions, only a call
/// without arguments is allowed.
///
/// A rule that denies or asks matches by the arguments that it names, and in doubt it does.
///
/// ```
/// use harness::approval::{Arguments, Condition};
/// use serde_json::json;
///
/// let small = Arguments::new()
///     .with("/customer", Condition::equals("c-7"))
///     .with("/file", Condition::under("/srv/files"));
/// assert!(small.allow(&json!({"customer": "c-7", "file": "/srv/files/a.txt"})));
/// assert!(!small.allow(&json!({"customer": "c-7", "file": "/srv/files/../../etc/passwd"})));
/// assert!(!small.allow(&json!({"customer": "c-7", "file": "/srv/files/a.txt", "force": true})));
/// ```
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Arguments(BTreeMap<String, Condition>);

impl Arguments {
    /// Creates a set without conditions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Conditions that only these arguments meet.
    ///
    /// ```
    /// use harness::approval::Arguments;
    /// use serde_json::json;
    ///
    /// let same = Arguments::exactly(&json!({"to": "sam", "tags": ["a"]}));
    /// assert!(same.allow(&json!({"to": "sam", "tags": ["a"]})));
    /// assert!(!same.allow(&json!({"to": "sam", "tags": ["a", "b"]})));
    /// ```
    pub fn exactly(arguments: &Value) -> Self {
        let mut exactly = Self::default();
        match arguments {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let condition = Condition::Equals(value.clone());
                    exactly.0.insert(below("", name), condition);
                }
            }
            other => {
                exactly.0.insert(String::new(), Condition::Equals(other.clone()));
            }
        }
        exactly
    }

    /// Adds a condition on the argument at a JSON pointer, such as `/to` or `/order/id`. A later one
    /// at the same pointer replaces it.
    #[must_use]
    pub fn with(mut self, pointer: impl Into<String>, condition: Condition) -> Self {
        self.0.insert(pointer.into(), condition);
        self
    }

    /// The conditions by their pointers.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Condition)> {
        self.0.iter().map(|(pointer, condition)| (pointer.as_str(), condition))
    }

    /// Whether a rule that allows matches: every condition holds, and every argument is named.
    pub fn allow(&self, arguments: &Value) -> bool {
        let hold = self.0.iter().all(|(at, condition)| condition.holds(arguments.pointer(at)));
        hold && self.name_all("", arguments)
    }

    /// Whether a rule that denies or asks matches: no condition surely fails.
    pub fn catch(&self, arguments: &Value) -> bool {
        self.0.iter().all(|(at, condition)| condition.may_hold(arguments.pointer(at)))
    }

    /// Whether conditions name everything in the value at a pointer.
    fn name_all(&self, at: &str, value: &Value) -> bool {
        if self.0.contains_key(at) {
            return true;
        }
        let empty = at.is_empty();
        match value {
            Value::Object(fields) => {
                (empty || !fields.is_empty())
                    && fields.iter().all(|(name, value)| self.name_all(&below(at, name), value))
            }
            Value::Array(items) => {
                let mut items = items.iter().enumerate();
                items.len() > 0 && items.all(|(n, item)| self.name_all(&format!("{at}/{n}"), item))
            }
            _ => false,
        }
    }
}

/// The pointer of a field of the value at `at`.
fn below(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}

impl fmt::Debug for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.0).finish()
    }
}
