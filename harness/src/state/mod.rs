//! The data of a loop, and how it changes.
//!
//! A loop has one [`State`]. Steps do not write to it. They return an *update*, and a *reducer* per
//! field folds the update into the state. A reducer records what it does in an [`Ops`]. The
//! operations ([`Op`]) are plain data: [`fold`] applies them to the JSON of a state without user
//! code, so a log still replays after the reducers have changed.
//!
//! # The replay law
//!
//! Let `new` be the state `old` after update `u`. Folding the operations that `u` recorded into the
//! JSON of `old` gives the JSON of `new` ([`Schema::difference`] returns `None`).
//!
//! # A commit costs what the update costs
//!
//! `append` records the new items, `merge` the entries, `union` the new members, and `upsert` the
//! items, not the whole field. Reducers of small values (`add`, `max`, `min`, `first`) and reducers
//! that return nothing record the whole field.

mod encode;
mod fold;
mod has;
mod migrate;
mod op;
mod ops;
mod reduce;
mod schema;
mod stored;
mod take;

pub use encode::{EncodeError, encode};
pub(crate) use fold::fold_owned;
pub use fold::{FoldError, fold};
pub use has::Has;
pub use migrate::{MigrateError, Migration, MigrationChain};
pub use op::{Op, Path, Segment};
pub use ops::{FieldOps, Ops, OpsError};
pub use reduce::{
    Add, Append, Edits, Entries, First, Fold, Folded, Max, Merge, Min, Nest, Union, Upsert,
};
pub use schema::{Field, Schema};
pub use stored::Stored;
pub(crate) use stored::{of_json, to_json, update_to_json};
pub use take::{IntoOption, Items};

// The compiler names them in errors about an update that cannot be encoded.
#[doc(hidden)]
pub use serde::{Deserialize, Serialize};

/// Derives [`State`](trait@State): the update type, its setters and the reducers.
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
/// `#[state(reduce = ..)]` sets the reducer of a field.
///
/// | reducer | field | setter takes | folds by |
/// |---|---|---|---|
/// | none, `replace` | any | the value | replacing it |
/// | `append` | `Vec`, `VecDeque` | items | pushing them |
/// | `add` | numbers, `Duration`, any [`Add`] | an amount | adding; integers saturate |
/// | `max`, `min` | `Option<T>` | a `T` | keeping the greatest, the least |
/// | `first` | `Option<T>` | a `T` | keeping the first value written |
/// | `union` | `BTreeSet`, `HashSet` | members | inserting them |
/// | `merge` | `BTreeMap`, `HashMap` | pairs | inserting; later ones replace |
/// | `upsert(id)` | `Vec` | items | replacing the item with the same `id`, otherwise pushing |
/// | `transcript` | `Transcript`, any [`Fold`] | entries | the rules of the type |
/// | a path | any | the function's second parameter | calling `fn(&mut Field, Change)` |
///
/// These words take precedence over functions of the same name; for such a function write
/// `self::add`.
///
/// A custom function may take a type other than the field's; set it with `update = Change`. It
/// returns nothing, or [`Edits`] to record less than the whole field.
///
/// # Setters
///
/// A setter takes the type in the table. A `String` is taken as `impl Into<String>`, several items as
/// any [`IntoIterator`] of them ([`Items`]), and a value for an `Option<T>` as the option, as a `T`
/// without `Some`, and for a text also as `&str` ([`IntoOption`]). Calls of a setter compose, except
/// for a field without a reducer, where the last call wins.
///
/// # States in states
///
/// `#[state(nest)]` on a field whose type is a state folds it by the reducers of that type: the setter
/// takes its update. It is the part of the state that [a nested loop](crate::Define::part) with a state
/// of its own works on. The version of the outer state covers the inner one.
///
/// ```
/// # use harness::State;
/// # use serde::{Deserialize, Serialize};
/// #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
/// struct Essay {
///     #[state(reduce = append)]
///     paragraphs: Vec<String>,
/// }
///
/// #[derive(State, Clone, Debug, Default, Serialize, Deserialize)]
/// struct Paper {
///     #[state(nest)]
///     essay: Essay,
/// }
///
/// let update = Paper::update().essay(Essay::update().paragraphs(["One.".to_owned()]));
/// # let _ = update;
/// ```
///
/// # Parts
///
/// `#[state(provides)]` on a field implements [`Has`] for its type, so that library steps work with
/// every state that has such a field. Only one field of a state can provide a type.
///
/// # Versions
///
/// `#[state(version = 3, migrate = from_v2)]` on the struct sets the version of the stored form,
/// and the function `fn(Old) -> Result<Self, E>` that reads the previous version. Repeat `migrate`
/// for older versions: `migrate = from_v2, migrate = from_v1`. The result of each function is the
/// argument of the one before it.
///
/// # The stored form
///
/// An update is stored field by field. `#[serde(rename)]` and `rename_all` are supported. Serde
/// options that change the stored shape of a field (`flatten`, `skip`, `with`, ..) are compile
/// errors, and so is `Option<Option<T>>`: JSON has one `null`. In the types of fields these options
/// are serde's and yours: what `#[serde(skip)]` omits there is its default after a resume. A test
/// finds it with `survives_storage` of the feature `testing`. A `Some(None)` in them is refused by the
/// commit that has it.
pub use harness_macros::State;

/// The typed data of a loop.
///
/// `#[derive(State)]` writes the update type and applies the reducer of each field. Default values
/// come from `Default` only.
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
pub trait State: Default + Clone + Stored + Send + Sync + 'static {
    /// The partial update that a step returns. Every field is optional.
    type Update: Default + std::fmt::Debug + Stored + Send + 'static;

    /// The version of the stored form.
    const VERSION: u32 = 1;

    /// An empty update.
    #[must_use]
    fn update() -> Self::Update {
        Self::Update::default()
    }

    /// Folds an update into the state and records the operations in `ops`.
    fn apply(&mut self, update: Self::Update, ops: &mut Ops);

    /// The names, types and reducers of the fields.
    #[must_use]
    fn schema() -> Schema;

    /// The migration from the previous version, if there is one.
    #[must_use]
    fn migration() -> Option<Migration<Self>> {
        None
    }
}
