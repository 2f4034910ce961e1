//! The reducers that keep the greatest, the least or the first value.
//!
//! All three fold an `Option<T>`. `None` means that no value was written yet, so no value of `T`
//! has a special meaning.

use serde::Serialize;

use crate::state::FieldOps;

/// Reducer `max`: keeps the greatest value.
///
/// ```
/// use harness::state::{Ops, Max};
///
/// let mut field = Some(3);
/// for value in [1, 5, 4] {
///     Max::max(&mut field, value, &mut Ops::off().field("field"));
/// }
/// assert_eq!(field, Some(5));
/// ```
#[diagnostic::on_unimplemented(
    message = "reducer `max` cannot fold a field of type `{Self}`",
    label = "cannot fold `{Self}`",
    note = "`max` supports `Option<T>` where `T` is ordered (`None` means that no value was written yet)"
)]
pub trait Max {
    /// The `T` of an `Option<T>`.
    type Value;

    /// Keeps `value` if it is the first or greater. Returns whether it did.
    fn keep(field: &mut Option<Self::Value>, value: Self::Value) -> bool;

    /// Folds a value into the field and records the operation.
    fn max(&mut self, value: Self::Value, ops: &mut FieldOps<'_>);
}

impl<T: PartialOrd + Serialize> Max for Option<T> {
    type Value = T;

    fn keep(field: &mut Self, value: T) -> bool {
        let keeps = field.as_ref().is_none_or(|old| value > *old);
        if keeps {
            *field = Some(value);
        }
        keeps
    }

    fn max(&mut self, value: T, ops: &mut FieldOps<'_>) {
        if <Self as Max>::keep(self, value) {
            ops.set(self);
        }
    }
}

/// Reducer `min`: keeps the least value.
///
/// ```
/// use harness::state::{Ops, Min};
///
/// let mut field = Some(3);
/// for value in [4, 2, 5] {
///     Min::min(&mut field, value, &mut Ops::off().field("field"));
/// }
/// assert_eq!(field, Some(2));
/// ```
#[diagnostic::on_unimplemented(
    message = "reducer `min` cannot fold a field of type `{Self}`",
    label = "cannot fold `{Self}`",
    note = "`min` supports `Option<T>` where `T` is ordered (`None` means that no value was written yet)"
)]
pub trait Min {
    /// The `T` of an `Option<T>`.
    type Value;

    /// Keeps `value` if it is the first or less. Returns whether it did.
    fn keep(field: &mut Option<Self::Value>, value: Self::Value) -> bool;

    /// Folds a value into the field and records the operation.
    fn min(&mut self, value: Self::Value, ops: &mut FieldOps<'_>);
}

impl<T: PartialOrd + Serialize> Min for Option<T> {
    type Value = T;

    fn keep(field: &mut Self, value: T) -> bool {
        let keeps = field.as_ref().is_none_or(|old| value < *old);
        if keeps {
            *field = Some(value);
        }
        keeps
    }

    fn min(&mut self, value: T, ops: &mut FieldOps<'_>) {
        if <Self as Min>::keep(self, value) {
            ops.set(self);
        }
    }
}

/// Reducer `first`: keeps the first value written.
///
/// ```
/// use harness::state::{Ops, First};
///
/// let mut field = Some(3);
/// for value in [4, 2] {
///     First::first(&mut field, value, &mut Ops::off().field("field"));
/// }
/// assert_eq!(field, Some(3));
/// ```
#[diagnostic::on_unimplemented(
    message = "reducer `first` cannot fold a field of type `{Self}`",
    label = "cannot fold `{Self}`",
    note = "`first` supports `Option<T>` (`None` means that no value was written yet)"
)]
pub trait First {
    /// The `T` of an `Option<T>`.
    type Value;

    /// Keeps `value` if it is the first. Returns whether it did.
    fn keep(field: &mut Option<Self::Value>, value: Self::Value) -> bool;

    /// Folds a value into the field and records the operation.
    fn first(&mut self, value: Self::Value, ops: &mut FieldOps<'_>);
}

impl<T: Serialize> First for Option<T> {
    type Value = T;

    fn keep(field: &mut Self, value: T) -> bool {
        let keeps = field.is_none();
        if keeps {
            *field = Some(value);
        }
        keeps
    }

    fn first(&mut self, value: T, ops: &mut FieldOps<'_>) {
        if <Self as First>::keep(self, value) {
            ops.set(self);
        }
    }
}
