//! The reducer of sets.

use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher, Hash};

use serde::Serialize;

use crate::state::FieldOps;

/// Reducer `union`: inserts the members of the update.
///
/// ```
/// use std::collections::BTreeSet;
/// use harness::state::{Ops, Union};
///
/// let mut ops = Ops::on();
/// let mut tags = BTreeSet::from(["a"]);
/// tags.insert_members(vec!["a", "b"], &mut ops.field("tags"));
/// assert_eq!(tags, BTreeSet::from(["a", "b"]));
/// assert_eq!(ops.finish()?.len(), 1);
/// # Ok::<(), harness::state::OpsError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "reducer `union` cannot fold a field of type `{Self}`",
    label = "cannot fold `{Self}`",
    note = "`union` supports `BTreeSet<T>` and `HashSet<T>`"
)]
pub trait Union {
    /// The type of the members.
    type Item;

    /// Inserts the members and records the new ones.
    fn insert_members(&mut self, members: Vec<Self::Item>, ops: &mut FieldOps<'_>);
}

impl<T: Ord + Serialize> Union for BTreeSet<T> {
    type Item = T;

    fn insert_members(&mut self, members: Vec<T>, ops: &mut FieldOps<'_>) {
        for member in members {
            if !self.contains(&member) {
                ops.insert(&member);
                self.insert(member);
            }
        }
    }
}

impl<T: Eq + Hash + Serialize, S: BuildHasher> Union for HashSet<T, S> {
    type Item = T;

    fn insert_members(&mut self, members: Vec<T>, ops: &mut FieldOps<'_>) {
        for member in members {
            if !self.contains(&member) {
                ops.insert(&member);
                self.insert(member);
            }
        }
    }
}
