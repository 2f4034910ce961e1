//! Custom reducers.

use serde::Serialize;

use crate::state::{FieldOps, Ops};

/// What a custom reducer may return: nothing, or the [`Edits`] it made.
#[diagnostic::on_unimplemented(
    message = "a reducer cannot return `{Self}`",
    label = "returns `{Self}`",
    note = "a reducer is a `fn(&mut Field, Change)` that returns nothing, or `harness::state::Edits` to record its changes"
)]
pub trait Folded<T> {
    /// Records what the reducer did to the field.
    fn record(self, field: &T, ops: &mut FieldOps<'_>);
}

/// Records the whole field.
impl<T: Serialize> Folded<T> for () {
    fn record(self, field: &T, ops: &mut FieldOps<'_>) {
        ops.set(field);
    }
}

impl<T> Folded<T> for Edits {
    fn record(self, _: &T, ops: &mut FieldOps<'_>) {
        ops.adopt(self.0);
    }
}

/// The changes that a custom reducer made to its field, so that a large field is not recorded as a
/// whole.
///
/// ```
/// use harness::State;
/// use harness::state::Edits;
/// use serde::{Deserialize, Serialize};
///
/// fn count(words: &mut Vec<(String, u32)>, word: String) -> Edits {
///     match words.iter_mut().enumerate().find(|(_, (known, _))| *known == word) {
///         Some((index, (_, count))) => {
///             *count += 1;
///             Edits::record(|log| log.index(index).index(1).set(count))
///         }
///         None => {
///             let entry = (word, 1);
///             let edits = Edits::record(|log| log.push(&entry));
///             words.push(entry);
///             edits
///         }
///     }
/// }
///
/// #[derive(State, Clone, Default, Serialize, Deserialize)]
/// struct Text {
///     #[state(reduce = count, update = String)]
///     words: Vec<(String, u32)>,
/// }
/// ```
#[derive(Debug)]
#[must_use = "return the edits from the reducer, otherwise they are not recorded"]
pub struct Edits(Ops);

impl Edits {
    /// Records edits of the reducer's field.
    pub fn record(edit: impl FnOnce(&mut FieldOps<'_>)) -> Self {
        let mut ops = Ops::on();
        edit(&mut ops.root());
        Self(ops)
    }
}
