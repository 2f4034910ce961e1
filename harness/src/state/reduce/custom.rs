//! Reducers that users write.

use serde::Serialize;

use crate::state::{FieldOps, Ops};

/// What a reducer of your own may return: nothing, or the [`Edits`] it made.
#[diagnostic::on_unimplemented(
    message = "a reducer cannot return `{Self}`",
    label = "returns `{Self}`",
    note = "a reducer is `fn(&mut Field, Change)` and returns nothing, or `harness::state::Edits` to say what it did"
)]
pub trait Folded<T> {
    /// Records what the reducer did to the field.
    fn record(self, field: &T, ops: &mut FieldOps<'_>);
}

/// The field is recorded as a whole.
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

/// What a reducer of your own did to its field, so that a big field is not
/// recorded as a whole.
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
    /// Records edits below the field that the reducer is given.
    pub fn record(edit: impl FnOnce(&mut FieldOps<'_>)) -> Self {
        let mut ops = Ops::on();
        edit(&mut ops.root());
        Self(ops)
    }
}
