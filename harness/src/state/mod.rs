//! The data of a loop, and how it changes.
//!
//! A loop has one [`State`]. Its steps never write to it: they return an
//! *update*, which says what is to change, and a *reducer* per field says how
//! the change is folded in. While it folds, a reducer tells an [`Ops`] what it
//! did. The operations ([`Op`]) are plain data: [`fold`] applies them to the
//! JSON of a state without any user code, so a log of them can be replayed when
//! the reducers have long been rewritten.
//!
//! # One law
//!
//! For every state `old` and every update `u`, with `new` being `old` after
//! `u`: folding the operations that `u` recorded over the JSON of `old` gives
//! the JSON of `new` ([`Schema::difference`] finds nothing).
//!
//! # A commit costs what the update costs
//!
//! `append` records the items and not the list, `merge` the entries, `union`
//! the new members, `upsert` the items. Only reducers of small values (`add`,
//! `max`, `min`, `first`) and those that have no finer answer record the whole
//! field.

mod encode;
mod fold;
mod has;
mod migrate;
mod op;
mod ops;
mod reduce;
mod schema;

pub use encode::{EncodeError, encode};
pub(crate) use fold::fold_owned;
pub use fold::{FoldError, fold};
pub use has::Has;
pub use migrate::{MigrateError, Migration, MigrationChain};
pub use op::{Op, Path, Segment};
pub use ops::{FieldOps, Ops, OpsError};
pub use reduce::{
    Add, Append, Edits, Entries, First, Fold, Folded, Max, Merge, Min, Union, Upsert,
};
pub use schema::{Field, Schema};

use serde::de::DeserializeOwned;
// The compiler names them when an update cannot be stored.
#[doc(hidden)]
pub use serde::{Deserialize, Serialize};

/// Derives [`State`](trait@State): the update type, its setters and the folding.
///
/// ```
/// use harness::State;
/// use serde::{Deserialize, Serialize};
///
/// fn longest(longest: &mut String, word: String) {
///     if word.len() > longest.len() {
///         *longest = word;
///     }
/// }
///
/// #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
/// struct Essay {
///     title: Option<String>,
///     #[state(reduce = append)]
///     paragraphs: Vec<String>,
///     #[state(reduce = add)]
///     words: u64,
///     #[state(reduce = longest)]
///     longest: String,
/// }
///
/// let update = Essay::update().paragraphs(["One.".to_owned()]).words(1);
/// assert_eq!(format!("{update:?}"), "EssayUpdate { paragraphs, words }");
/// ```
///
/// # Reducers
///
/// `#[state(reduce = ..)]` on a field chooses how it folds an update in.
///
/// | reducer | field | setter takes | folds by |
/// |---|---|---|---|
/// | none, `replace` | any | the value | replacing it |
/// | `append` | `Vec`, `VecDeque` | items | pushing them |
/// | `add` | numbers, `Duration`, any [`Add`] | an amount | adding, integers stop at their limits |
/// | `max`, `min` | `Option<T>` | a `T` | keeping the greatest, the least |
/// | `first` | `Option<T>` | a `T` | keeping the first ever written |
/// | `union` | `BTreeSet`, `HashSet` | members | inserting them |
/// | `merge` | `BTreeMap`, `HashMap` | pairs | inserting, later ones win |
/// | `upsert(id)` | `Vec` | items | replacing the item with the same `id`, else pushing |
/// | `transcript` | `Transcript`, any [`Fold`] | entries | what the type says |
/// | a path | any | the function's second parameter | calling `fn(&mut Field, Change)` |
///
/// The words win over functions of the same name; for those write `self::add`.
///
/// A function of your own may take a type that differs from the field's; name
/// it by `update = Change`. It returns nothing, or [`Edits`] when it can say
/// what it did more cheaply than by the whole field.
///
/// # Setters
///
/// A setter takes exactly the type in the table; a `String` is taken as
/// `impl Into<String>`, several items as `impl IntoIterator`. Calling a setter
/// again composes, except for a field without a reducer, which is overwritten.
///
/// # Parts
///
/// `#[state(provides)]` on a field implements [`Has`] for its type, so that steps of a library serve
/// every state with such a field. A state provides a type by one field.
///
/// # Versions
///
/// `#[state(version = 3, migrate = from_v2)]` on the struct names the version of
/// the stored form and the function `fn(Old) -> Result<Self, E>` that reads the
/// version before it. Repeat `migrate` for versions further back, each function giving what the one
/// before it takes: `migrate = from_v2, migrate = from_v1`.
///
/// # The stored form
///
/// An update is stored field by field, so `#[serde(rename)]` and `rename_all`
/// are followed, while serde options that give a field another shape (`flatten`,
/// `skip`, `with`, ..) are compile errors.
pub use harness_macros::State;

/// The typed data of a loop.
///
/// Derive it: `#[derive(State)]` writes the update type and folds every field
/// by its reducer. `Default` is the only source of default values.
///
/// ```
/// use harness::State;
/// use harness::state::Ops;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
/// struct Chat {
///     #[state(reduce = append)]
///     lines: Vec<String>,
///     #[state(reduce = add)]
///     turns: u32,
///     answer: Option<String>,
/// }
///
/// let mut chat = Chat::default();
/// let update = Chat::update().lines(["hi".to_owned()]).turns(1);
/// chat.apply(update, &mut Ops::off());
/// assert_eq!(chat.lines, ["hi"]);
/// assert_eq!(chat.turns, 1);
/// assert_eq!(chat.answer, None);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the state of a loop",
    note = "write `#[derive(State, Clone, Default, Serialize, Deserialize)]` above the struct"
)]
pub trait State: Default + Clone + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The partial change a step returns: every field optional.
    type Update: Default + std::fmt::Debug + Serialize + DeserializeOwned + Send + 'static;

    /// The version of the stored form.
    const VERSION: u32 = 1;

    /// An update that changes nothing yet.
    #[must_use]
    fn update() -> Self::Update {
        Self::Update::default()
    }

    /// Folds an update in, telling `ops` what the reducers did.
    fn apply(&mut self, update: Self::Update, ops: &mut Ops);

    /// What the fields are called, what they hold and how they fold.
    #[must_use]
    fn schema() -> Schema;

    /// How the stored form of the version before this one is read.
    #[must_use]
    fn migration() -> Option<Migration<Self>> {
        None
    }
}
