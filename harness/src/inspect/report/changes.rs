//! What an entry did to the state.

use std::io;

use serde_json::Value;

use crate::session::Change;
use crate::state::{Op, Path, Segment};

use super::lines::{DiffLine, clipped, diff};

/// The most changes of one entry that are kept.
const MAX_CHANGES: usize = 40;
/// The most bytes of a value that are kept.
const MAX_VALUE: usize = 600;
/// The most characters of a path that are kept: its keys are data, too.
const MAX_PATH: usize = 200;
/// How deep two values are compared.
const MAX_DEPTH: usize = 32;

/// A change of a value of the state.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateChange {
    /// Where the value is, such as `orders[2].cents`.
    pub path: String,
    /// The beginning of what was there, as JSON; `None` if it is new.
    pub before: Option<String>,
    /// The beginning of what is there now; `None` if it was removed.
    pub after: Option<String>,
    /// The lines that changed, of a text of several lines.
    pub lines: Vec<DiffLine>,
}

/// Changes, up to a number.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) kept: Vec<StateChange>,
    pub(super) more: usize,
}

/// What changed between two states. Large values are shortened, and of very many changes only the first
/// are kept: the second value counts the others.
///
/// ```
/// use harness::inspect::report::compare;
/// use serde_json::json;
///
/// let (changes, more) = compare(&json!({"n": 1, "list": []}), &json!({"n": 2, "list": ["a"]}));
/// let paths: Vec<_> = changes.iter().map(|change| &*change.path).collect();
/// assert_eq!((paths, more), (vec!["list[0]", "n"], 0));
/// ```
#[must_use]
pub fn compare(before: &Value, after: &Value) -> (Vec<StateChange>, usize) {
    let mut changes = Changes::default();
    changes.between(&mut String::new(), Some(before), Some(after), 0);
    (changes.kept, changes.more)
}

impl Changes {
    /// What a change that is about to be applied to `state` does to it.
    pub(super) fn of(change: &Change, state: &Value) -> Self {
        let mut changes = Self::default();
        match change {
            Change::Committed(it) => changes.ops(&it.ops, state),
            Change::RunStarted(it) => changes.ops(&it.ops, state),
            Change::Edited(it) => changes.ops(&it.ops, state),
            Change::Adopted(it) => {
                if let Some(adopted) = &it.state {
                    changes.between(&mut String::new(), Some(state), Some(adopted), 0);
                }
            }
            _ => {}
        }
        changes
    }

    fn ops(&mut self, ops: &[Op], state: &Value) {
        // How many items earlier operations of the same entry have pushed onto a list.
        let mut pushed: Vec<(&Path, usize)> = Vec::new();
        for op in ops {
            let path = op.path();
            let there = at(state, path);
            let mut name = path.to_string();
            match op {
                Op::Set { value, .. } => self.between(&mut name, there, Some(value), 0),
                Op::Push { value, .. } | Op::Insert { value, .. } => {
                    let known = pushed.iter_mut().find(|(list, _)| *list == path);
                    let nth = match known {
                        Some((_, count)) => {
                            *count += 1;
                            *count
                        }
                        None => {
                            pushed.push((path, 0));
                            0
                        }
                    };
                    let length = there.and_then(Value::as_array).map_or(0, Vec::len);
                    name.push_str(&format!("[{}]", length + nth));
                    self.between(&mut name, None, Some(value), 0);
                }
                Op::Put { key, value, .. } => {
                    below(&mut name, key);
                    self.between(&mut name, there.and_then(|map| map.get(key)), Some(value), 0);
                }
                Op::Upsert { key, value, .. } => {
                    let items = there.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                    let same = |item: &Value| item.get(&**key) == value.get(&**key);
                    let place = items.iter().position(same);
                    name.push_str(&format!("[{}]", place.unwrap_or(items.len())));
                    let before = place.and_then(|place| items.get(place));
                    self.between(&mut name, before, Some(value), 0);
                }
                Op::Del { key: Segment::Key(key), .. } => {
                    below(&mut name, key);
                    self.between(&mut name, there.and_then(|map| map.get(&**key)), None, 0);
                }
                Op::Del { key: Segment::Index(index), .. } => {
                    name.push_str(&format!("[{index}]"));
                    self.between(&mut name, there.and_then(|list| list.get(index)), None, 0);
                }
            }
        }
    }

    /// Adds what differs between two values at a path.
    fn between(
        &mut self,
        path: &mut String,
        before: Option<&Value>,
        after: Option<&Value>,
        depth: usize,
    ) {
        let length = path.len();
        match (before, after) {
            (Some(Value::Object(old)), Some(Value::Object(new))) if depth < MAX_DEPTH => {
                let gone = old.keys().filter(|key| !new.contains_key(*key));
                for key in new.keys().chain(gone) {
                    below(path, key);
                    self.between(path, old.get(key), new.get(key), depth + 1);
                    path.truncate(length);
                }
            }
            (Some(Value::Array(old)), Some(Value::Array(new))) if depth < MAX_DEPTH => {
                for index in 0..old.len().max(new.len()) {
                    path.push_str(&format!("[{index}]"));
                    self.between(path, old.get(index), new.get(index), depth + 1);
                    path.truncate(length);
                }
            }
            (before, after) if before == after => {}
            _ if self.kept.len() >= MAX_CHANGES => self.more += 1,
            (before, after) => {
                let lines = match (before, after) {
                    (Some(Value::String(old)), Some(Value::String(new))) => diff(old, new),
                    _ => Vec::new(),
                };
                let (before, after) = (before.map(beginning), after.map(beginning));
                let path = clipped(path, MAX_PATH);
                self.kept.push(StateChange { path, before, after, lines });
            }
        }
    }
}

fn below(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}

fn at<'v>(state: &'v Value, path: &Path) -> Option<&'v Value> {
    path.segments().iter().try_fold(state, |here, segment| match segment {
        Segment::Key(key) => here.get(&**key),
        Segment::Index(index) => here.get(index),
    })
}

/// The beginning of a value, as JSON.
pub(super) fn beginning(value: &Value) -> String {
    json(value, MAX_VALUE, false)
}

/// A value as JSON of at most so many bytes, with its size if there are more.
pub(super) fn json(value: &Value, most: usize, pretty: bool) -> String {
    let mut out = Bounded { kept: Vec::new(), most, size: 0 };
    // A value always encodes, and this writer takes all bytes.
    let _ = match pretty {
        true => serde_json::to_writer_pretty(&mut out, value),
        false => serde_json::to_writer(&mut out, value),
    };
    let Bounded { kept, size, .. } = out;
    let whole = size == kept.len();
    let mut text = match String::from_utf8(kept) {
        Ok(text) => text,
        Err(cut) => {
            let valid = cut.utf8_error().valid_up_to();
            let mut bytes = cut.into_bytes();
            bytes.truncate(valid);
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    if !whole {
        text.push_str(&format!("… ({size} bytes)"));
    }
    text
}

/// Keeps the first bytes, and counts all.
struct Bounded {
    kept: Vec<u8>,
    most: usize,
    size: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.most.saturating_sub(self.kept.len()).min(bytes.len());
        self.kept.extend_from_slice(&bytes[..room]);
        self.size += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
