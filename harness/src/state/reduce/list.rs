//! The reducers of lists, with and without keys.

use std::collections::VecDeque;

use serde::Serialize;

use crate::state::FieldOps;

/// Reducer `append`: pushes the items of the update.
///
/// ```
/// use harness::state::{Append, Ops};
///
/// let mut lines = vec!["one"];
/// lines.append_items(vec!["two"], &mut Ops::off().field("lines"));
/// assert_eq!(lines, ["one", "two"]);
/// ```
#[diagnostic::on_unimplemented(
    message = "reducer `append` cannot fold a field of type `{Self}`",
    label = "cannot fold `{Self}`",
    note = "`append` supports `Vec<T>` and `VecDeque<T>`"
)]
pub trait Append {
    /// The type of the items.
    type Item;

    /// Pushes the items and records them.
    fn append_items(&mut self, items: Vec<Self::Item>, ops: &mut FieldOps<'_>);
}

impl<T: Serialize> Append for Vec<T> {
    type Item = T;

    fn append_items(&mut self, items: Vec<T>, ops: &mut FieldOps<'_>) {
        items.iter().for_each(|item| ops.push(item));
        self.extend(items);
    }
}

impl<T: Serialize> Append for VecDeque<T> {
    type Item = T;

    fn append_items(&mut self, items: Vec<T>, ops: &mut FieldOps<'_>) {
        items.iter().for_each(|item| ops.push(item));
        self.extend(items);
    }
}

/// Reducer `upsert(key)`: replaces the first item with the same key, otherwise pushes the item.
///
/// ```
/// use harness::state::{Ops, Upsert};
///
/// #[derive(serde::Serialize)]
/// struct Row { id: u32, text: &'static str }
///
/// let mut rows = vec![Row { id: 1, text: "old" }];
/// let update = vec![Row { id: 1, text: "new" }, Row { id: 2, text: "other" }];
/// rows.upsert_items(update, "id", |row| &row.id, &mut Ops::off().field("rows"));
/// assert_eq!(rows.len(), 2);
/// assert_eq!(rows[0].text, "new");
/// ```
#[diagnostic::on_unimplemented(
    message = "reducer `upsert` cannot fold a field of type `{Self}`",
    label = "cannot fold `{Self}`",
    note = "`upsert(key)` supports `Vec<T>` where `T` is a struct with a field `key`"
)]
pub trait Upsert {
    /// The type of the items.
    type Item;

    /// Replaces or pushes each item, in order, and records it.
    ///
    /// `name` is the stored name of the item's field that `key` reads.
    fn upsert_items<K: PartialEq>(
        &mut self,
        items: Vec<Self::Item>,
        name: &'static str,
        key: impl Fn(&Self::Item) -> &K,
        ops: &mut FieldOps<'_>,
    );
}

impl<T: Serialize> Upsert for Vec<T> {
    type Item = T;

    fn upsert_items<K: PartialEq>(
        &mut self,
        items: Vec<T>,
        name: &'static str,
        key: impl Fn(&T) -> &K,
        ops: &mut FieldOps<'_>,
    ) {
        for item in items {
            ops.upsert(name, &item);
            match self.iter_mut().find(|old| key(old) == key(&item)) {
                Some(old) => *old = item,
                None => self.push(item),
            }
        }
    }
}
