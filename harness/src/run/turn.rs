//! Reducing the input of a turn.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::log::check_ops;
use crate::state::{Op, Ops, State};
use crate::text::words;

use super::error::Kind;

/// Reduces an input into a state, and says what the reducers did.
pub(crate) fn reduce<S: State>(state: &mut S, input: S::Update) -> Result<Vec<Op>, Kind> {
    let mut ops = Ops::on();
    catch_unwind(AssertUnwindSafe(|| state.apply(input, &mut ops)))
        .map_err(|panic| Kind::InputPanicked(words(&*panic)))?;
    let ops = ops.finish().map_err(|error| Kind::InputNotEncodable(error.to_string()))?;
    check_ops(&ops).map_err(|error| Kind::InputNotEncodable(error.to_string()))?;
    Ok(ops)
}
