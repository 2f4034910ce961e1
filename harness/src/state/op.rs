//! The operations that a log holds.
//!
//! The set is frozen: a log holds them for years.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One change to the JSON of a state.
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
    /// The value at the path is now this one.
    Set {
        /// Where.
        #[serde(rename = "p")]
        path: Path,
        /// The value; `null` is a value, too.
        #[serde(rename = "v")]
        value: Value,
    },
    /// The list at the path has one more item, at its end.
    Push {
        /// Where the list is.
        #[serde(rename = "p")]
        path: Path,
        /// The item.
        #[serde(rename = "v")]
        value: Value,
    },
    /// The map at the path now holds this value under this key.
    Put {
        /// Where the map is.
        #[serde(rename = "p")]
        path: Path,
        /// The key.
        #[serde(rename = "k")]
        key: String,
        /// The value.
        #[serde(rename = "v")]
        value: Value,
    },
    /// The set at the path has one more member.
    ///
    /// A set is a list whose order means nothing. The member was not in it
    /// before, so folding needs no search.
    Insert {
        /// Where the set is.
        #[serde(rename = "p")]
        path: Path,
        /// The member.
        #[serde(rename = "v")]
        value: Value,
    },
    /// In the list at the path, this item has taken the place of the first one
    /// with the same key, or come to the end if there was none.
    Upsert {
        /// Where the list is.
        #[serde(rename = "p")]
        path: Path,
        /// The name of the field of an item that is its key.
        #[serde(rename = "k")]
        key: Cow<'static, str>,
        /// The item.
        #[serde(rename = "v")]
        value: Value,
    },
    /// The map (or list) at the path no longer has this key (or index).
    Del {
        /// Where the map or list is.
        #[serde(rename = "p")]
        path: Path,
        /// The key or index.
        #[serde(rename = "k")]
        key: Segment,
    },
}

impl Op {
    /// Where the operation applies.
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

    /// The word for it: `set`, `push`, `put`, `insert`, `upsert` or `del`.
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

/// A place in the JSON of a state: a field, and what lies below it.
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

    /// This path, which starts at `above`, from the top.
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
