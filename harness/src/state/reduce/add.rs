//! Sums.

use std::time::Duration;

/// Reducer `add`: adds an amount to the field.
///
/// Integers and `Duration` saturate at their limits. Implement it for your own type if its addition
/// is associative: the amounts in one update are summed first.
///
/// ```
/// use harness::state::Add;
///
/// struct Cost { cents: u64 }
///
/// impl Add for Cost {
///     fn add(&mut self, amount: Self) {
///         self.cents = self.cents.saturating_add(amount.cents);
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "reducer `add` cannot fold a field of type `{Self}`",
    label = "cannot fold `{Self}`",
    note = "`add` supports integers, `f32`, `f64`, `Duration`, and types that implement `harness::state::Add`"
)]
pub trait Add: Sized {
    /// Adds an amount.
    fn add(&mut self, amount: Self);

    /// Adds an amount to an optional sum.
    fn add_to(sum: &mut Option<Self>, amount: Self) {
        match sum {
            Some(sum) => sum.add(amount),
            None => *sum = Some(amount),
        }
    }
}

macro_rules! saturating {
    ($($type:ty)*) => {$(
        impl Add for $type {
            fn add(&mut self, amount: Self) {
                *self = self.saturating_add(amount);
            }
        }
    )*};
}

saturating! { u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize Duration }

macro_rules! plain {
    ($($type:ty)*) => {$(
        impl Add for $type {
            fn add(&mut self, amount: Self) {
                *self += amount;
            }
        }
    )*};
}

plain! { f32 f64 }
