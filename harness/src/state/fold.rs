//! Applies recorded operations to the JSON of a state.

use std::fmt;

use serde_json::{Map, Value};

use super::op::{Op, Path, Segment};

/// Applies operations, in order, to the JSON of a state. Runs no user code.
///
/// A missing list, set or map counts as empty, because a state stored before the field was added
/// lacks it. On an error the value stays as it is after the last operation that succeeded.
///
/// ```
/// use harness::state::{Ops, fold};
/// use serde_json::json;
///
/// let mut ops = Ops::on();
/// ops.field("lines").push("hi");
/// ops.field("turns").set(&1);
///
/// let mut state = json!({"lines": [], "turns": 0});
/// fold(&mut state, &ops.finish()?)?;
/// assert_eq!(state, json!({"lines": ["hi"], "turns": 1}));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Fails if an operation does not match the value at its path: the log and the state do not belong
/// together.
pub fn fold(state: &mut Value, ops: &[Op]) -> Result<(), FoldError> {
    fold_owned(state, ops.iter().cloned())
}

/// [`fold`] that consumes the operations and moves their values into the state.
pub(crate) fn fold_owned(
    state: &mut Value,
    ops: impl IntoIterator<Item = Op>,
) -> Result<(), FoldError> {
    for (index, op) in ops.into_iter().enumerate() {
        let name = op.name();
        apply(state, op).map_err(|(path, reason)| FoldError { index, name, path, reason })?;
    }
    Ok(())
}

fn apply(state: &mut Value, op: Op) -> Result<(), (Path, Reason)> {
    match op {
        Op::Set { path, value } => match (path.segments(), &mut *state) {
            // The common case, a field that is set again: one lookup.
            ([Segment::Key(field)], Value::Object(map)) => match map.get_mut(field.as_ref()) {
                Some(place) => *place = value,
                None => {
                    map.insert(field.as_ref().to_owned(), value);
                }
            },
            _ => match place(state, &path, Value::Null) {
                Ok(place) => *place = value,
                Err(reason) => return Err((path, reason)),
            },
        },
        Op::Push { path, value } | Op::Insert { path, value } => match list(state, &path) {
            Ok(items) => items.push(value),
            Err(reason) => return Err((path, reason)),
        },
        Op::Put { path, key, value } => match map(state, &path) {
            Ok(map) => {
                map.insert(key, value);
            }
            Err(reason) => return Err((path, reason)),
        },
        Op::Upsert { path, key, value } => {
            upsert(state, &path, &key, value).map_err(|reason| (path, reason))?;
        }
        Op::Del { path, key } => delete(state, &path, &key).map_err(|reason| (path, reason))?,
    }
    Ok(())
}

fn upsert(state: &mut Value, path: &Path, key: &str, value: Value) -> Result<(), Reason> {
    let id = value.get(key).ok_or(Reason::NoKey)?;
    let items = list(state, path)?;
    match items.iter_mut().find(|item| item.get(key) == Some(id)) {
        Some(item) => *item = value,
        None => items.push(value),
    }
    Ok(())
}

fn delete(state: &mut Value, path: &Path, key: &Segment) -> Result<(), Reason> {
    match key {
        Segment::Key(key) => {
            map(state, path)?.remove(key.as_ref());
        }
        Segment::Index(index) => {
            let items = list(state, path)?;
            if *index >= items.len() {
                return Err(Reason::Absent);
            }
            items.remove(*index);
        }
    }
    Ok(())
}

/// The value at a path. If the last segment is a new key, inserts `fresh`.
fn place<'v>(state: &'v mut Value, path: &Path, fresh: Value) -> Result<&'v mut Value, Reason> {
    let mut here = state;
    let mut fresh = Some(fresh);
    let last = path.segments().len().saturating_sub(1);
    for (depth, segment) in path.segments().iter().enumerate() {
        here = match here {
            Value::Object(map) => match segment {
                // Allocates a key only for a new entry.
                Segment::Key(key) if depth == last && !map.contains_key(key.as_ref()) => {
                    map.entry(key.as_ref()).or_insert(fresh.take().unwrap_or_default())
                }
                Segment::Key(key) => map.get_mut(key.as_ref()).ok_or(Reason::Absent)?,
                Segment::Index(_) => return Err(Reason::expected("a list", "a map")),
            },
            Value::Array(items) => match segment {
                Segment::Index(index) => items.get_mut(*index).ok_or(Reason::Absent)?,
                Segment::Key(_) => return Err(Reason::expected("a map", "a list")),
            },
            leaf => {
                let wanted = match segment {
                    Segment::Key(_) => "a map",
                    Segment::Index(_) => "a list",
                };
                return Err(Reason::expected(wanted, kind(leaf)));
            }
        };
    }
    Ok(here)
}

fn list<'v>(state: &'v mut Value, path: &Path) -> Result<&'v mut Vec<Value>, Reason> {
    match place(state, path, Value::Array(Vec::new()))? {
        Value::Array(items) => Ok(items),
        other => Err(Reason::expected("a list", kind(other))),
    }
}

fn map<'v>(state: &'v mut Value, path: &Path) -> Result<&'v mut Map<String, Value>, Reason> {
    match place(state, path, Value::Object(Map::new()))? {
        Value::Object(map) => Ok(map),
        other => Err(Reason::expected("a map", kind(other))),
    }
}

/// An operation that does not match the state it is folded into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldError {
    index: usize,
    name: &'static str,
    path: Path,
    reason: Reason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Reason {
    Absent,
    NoKey,
    Expected { wanted: &'static str, found: &'static str },
}

impl Reason {
    fn expected(wanted: &'static str, found: &'static str) -> Self {
        Self::Expected { wanted, found }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a bool",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

impl FoldError {
    /// The index of the operation, from zero.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// The path of the operation.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl fmt::Display for FoldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, path, .. } = self;
        write!(f, "operation `{name}` cannot be applied at `{path}`: ")?;
        match self.reason {
            Reason::Absent => f.write_str("the path does not exist"),
            Reason::NoKey => f.write_str("the item has no key"),
            Reason::Expected { wanted, found } => {
                write!(f, "expected {wanted}, found {found}")
            }
        }
    }
}

impl std::error::Error for FoldError {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn folded(mut state: Value, ops: Value) -> Result<Value, String> {
        let ops: Vec<Op> = serde_json::from_value(ops).unwrap();
        fold(&mut state, &ops).map_err(|error| error.to_string())?;
        Ok(state)
    }

    #[test]
    fn each_operation() {
        let ops = json!([
            {"set": {"p": ["a"], "v": null}},
            {"push": {"p": ["list"], "v": 2}},
            {"put": {"p": ["map"], "k": "y", "v": 2}},
            {"insert": {"p": ["set"], "v": "m"}},
            {"upsert": {"p": ["rows"], "k": "id", "v": {"id": 1, "n": "new"}}},
            {"upsert": {"p": ["rows"], "k": "id", "v": {"id": 2}}},
            {"del": {"p": ["map"], "k": "x"}},
            {"del": {"p": ["list"], "k": 0}},
            {"set": {"p": ["rows", 1, "n"], "v": true}},
        ]);
        let state = json!({"a": 1, "list": [1], "map": {"x": 1}, "set": [], "rows": [{"id": 1}]});
        assert_eq!(
            folded(state, ops).unwrap(),
            json!({
                "a": null, "list": [2], "map": {"y": 2}, "set": ["m"],
                "rows": [{"id": 1, "n": "new"}, {"id": 2, "n": true}],
            })
        );
    }

    #[test]
    fn a_missing_field_counts_as_empty() {
        let ops = json!([
            {"push": {"p": ["list"], "v": 1}},
            {"put": {"p": ["map"], "k": "k", "v": 1}},
            {"set": {"p": ["a"], "v": 1}},
        ]);
        assert_eq!(folded(json!({}), ops).unwrap(), json!({"list": [1], "map": {"k": 1}, "a": 1}));
    }

    #[test]
    fn reports_operations_that_do_not_match() {
        let text = |state, op| folded(state, json!([op])).unwrap_err();
        assert_eq!(
            text(json!({"a": "x"}), json!({"push": {"p": ["a"], "v": 1}})),
            "operation `push` cannot be applied at `a`: expected a list, found a string"
        );
        assert_eq!(
            text(json!({"a": null}), json!({"put": {"p": ["a"], "k": "", "v": 1}})),
            "operation `put` cannot be applied at `a`: expected a map, found null"
        );
        assert_eq!(
            text(json!({"a": []}), json!({"set": {"p": ["a", 0], "v": 1}})),
            "operation `set` cannot be applied at `a[0]`: the path does not exist"
        );
        assert_eq!(
            text(json!({}), json!({"set": {"p": ["a", "b"], "v": 1}})),
            "operation `set` cannot be applied at `a.b`: the path does not exist"
        );
        assert_eq!(
            text(json!({"a": []}), json!({"upsert": {"p": ["a"], "k": "id", "v": {}}})),
            "operation `upsert` cannot be applied at `a`: the item has no key"
        );
    }
}
