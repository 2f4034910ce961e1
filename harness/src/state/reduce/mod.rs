//! The reducers.
//!
//! Each reducer is a trait, implemented by the field types it supports; the derive calls it by
//! name. A reducer first folds in place and then records the operation. When recording is off, it
//! encodes nothing.

mod add;
mod custom;
mod extreme;
mod list;
mod merge;
mod nest;
mod transcript;
mod union;

pub use add::Add;
pub use custom::{Edits, Folded};
pub use extreme::{First, Max, Min};
pub use list::{Append, Upsert};
pub use merge::{Entries, Merge};
pub use nest::Nest;
pub use union::Union;

use super::{FieldOps, Stored};

/// Reducer `transcript`: a type that folds entries by its own rules.
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
    message = "neither `transcript` nor `esg` can fold a field of type `{Self}`",
    label = "cannot fold `{Self}`",
    note = "`transcript` supports `Transcript`, `esg` supports `harness::code::Code`, and both support types that implement `harness::state::Fold`"
)]
pub trait Fold {
    /// The type of an entry. An update holds one or more.
    type Item: Stored + Send + 'static;

    /// Folds an entry into the value and records the operations.
    fn fold(&mut self, item: Self::Item, ops: &mut FieldOps<'_>);
}
