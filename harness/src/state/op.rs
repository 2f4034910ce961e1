//! The operations in a log.
//!
//! The set is frozen, because logs are kept for years.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An operation on the JSON of a state.
///
/// ```
/// use harness::state::Op;
///
/// let op: Op = serde_json::from_str(r#"{"push":{"p":["lines"],"v":"hi"}}"#)?;
/// assert_eq!(op.path().to_string(), "lines");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Op {
    /// Sets the value at the path.
    Set {
        /// The path of the value.
        #[serde(rename = "p")]
        path: Path,
        /// The value; `null` is a value too.
        #[serde(rename = "v")]
        value: Value,
    },
    /// Pushes an item onto the list at the path.
    Push {
        /// The path of the list.
        #[serde(rename = "p")]
        path: Path,
        /// The item.
        #[serde(rename = "v")]
        value: Value,
    },
    /// Puts a value under a key into the map at the path.
    Put {
        /// The path of the map.
        #[serde(rename = "p")]
        path: Path,
        /// The key.
        #[serde(rename = "k")]
        key: String,
        /// The value.
        #[serde(rename = "v")]
        value: Value,
    },
    /// Inserts a new member into the set at the path.
    ///
    /// A set is a list whose order has no meaning. The member is always new, so folding does not
    /// search for it.
    Insert {
        /// The path of the set.
        #[serde(rename = "p")]
        path: Path,
        /// The member.
        #[serde(rename = "v")]
        value: Value,
    },
    /// Replaces the first item with the same key in the list at the path. If there is none, pushes
    /// the item.
    Upsert {
        /// The path of the list.
        #[serde(rename = "p")]
        path: Path,
        /// The field of an item that is its key.
        #[serde(rename = "k")]
        key: Cow<'static, str>,
        /// The item.
        #[serde(rename = "v")]
        value: Value,
    },
    /// Removes a key from the map at the path, or an index from the list.
    Del {
        /// The path of the map or list.
        #[serde(rename = "p")]
        path: Path,
        /// The key or index.
        #[serde(rename = "k")]
        key: Segment,
    },
}

impl Op {
    /// The path of the operation.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Set { path, .. }
            | Self::Push { path, .. }
            | Self::Put { path, .. }
            | Self::Insert { path, .. }
            | Self::Upsert { path, .. }
            | Self::Del { path, .. } => path,
        }
    }

    /// The name of the operation: `set`, `push`, `put`, `insert`, `upsert` or `del`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Set { .. } => "set",
            Self::Push { .. } => "push",
            Self::Put { .. } => "put",
            Self::Insert { .. } => "insert",
            Self::Upsert { .. } => "upsert",
            Self::Del { .. } => "del",
        }
    }

    pub(super) fn path_mut(&mut self) -> &mut Path {
        match self {
            Self::Set { path, .. }
            | Self::Push { path, .. }
            | Self::Put { path, .. }
            | Self::Insert { path, .. }
            | Self::Upsert { path, .. }
            | Self::Del { path, .. } => path,
        }
    }
}

/// A path in the JSON of a state: a field, and the segments below it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Path(Vec<Segment>);

impl Path {
    /// The segments, from the field downwards.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// The path of a field.
    pub(super) fn of(segment: Segment) -> Self {
        Self(vec![segment])
    }

    /// This path, appended to `above`.
    pub(super) fn below(self, above: &Self) -> Self {
        above.0.iter().cloned().chain(self.0).collect()
    }
}

impl FromIterator<Segment> for Path {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Self {
        Self(segments.into_iter().collect())
    }
}

/// Prints `talk[3].outcome`.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Key(key) if depth == 0 => f.write_str(key)?,
                Segment::Key(key) => write!(f, ".{key}")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// One step down a [`Path`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Segment {
    /// Into a map or a struct.
    Key(Cow<'static, str>),
    /// Into a list.
    Index(usize),
}
