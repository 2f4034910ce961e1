//! How a field folds an update in.
//!
//! One trait a reducer, implemented by the types it can fold; the derive calls
//! them by name. Each folds in place first and records what it did second, and
//! encodes nothing when recording is off.

mod add;
mod custom;
mod extreme;
mod list;
mod merge;
mod transcript;
mod union;

pub use add::Add;
pub use custom::{Edits, Folded};
pub use extreme::{First, Max, Min};
pub use list::{Append, Upsert};
pub use merge::{Entries, Merge};
pub use union::Union;

use serde::{Serialize, de::DeserializeOwned};

use super::FieldOps;

/// Reducer `transcript`: a type that folds entries in by rules of its own.
///
/// ```
/// use harness::state::{FieldOps, Fold};
///
/// /// Keeps every line, and counts it.
/// #[derive(serde::Serialize)]
/// struct Counted { lines: Vec<String>, count: usize }
///
/// impl Fold for Counted {
///     type Item = String;
///
///     fn fold(&mut self, line: String, ops: &mut FieldOps<'_>) {
///         ops.key("lines").push(&line);
///         self.lines.push(line);
///         self.count += 1;
///         ops.key("count").set(&self.count);
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "reducer `transcript` cannot fold a field of type `{Self}`",
    label = "cannot fold `{Self}`",
    note = "`transcript` takes a `Transcript`, or a type of yours that implements `harness::state::Fold`"
)]
pub trait Fold {
    /// What an update holds, one or more of.
    type Item: Serialize + DeserializeOwned + Send + 'static;

    /// Folds one entry in and records what that did.
    fn fold(&mut self, item: Self::Item, ops: &mut FieldOps<'_>);
}
