//! Loops within loops.

use std::fmt;
use std::panic::Location;

use crate::context::Context;
use crate::graph::{Target, To};
use crate::state::State;
use crate::step::{LoopEnd, StepId};

use super::StepDef;
use super::draft::Draft;
use super::step::EndsPlainly;

/// A step of a nested loop, without the target for when that loop ends: it needs `.then(..)`,
/// `.end()` or `.route(..)`.
#[must_use = "a nested loop needs a target for when it ends: `.then(step)`, `.end()` or `.route(..)`"]
pub struct NeedsEnds<C: Context, S: State, St, Sub> {
    pub(super) draft: Draft<C, S, Sub>,
    pub(super) wrap: Box<dyn Fn(Sub) -> St>,
}

impl<C: Context, S: State, St: StepId, Sub: StepId> NeedsEnds<C, S, St, Sub> {
    /// Continues at `step` when the nested loop ends.
    #[track_caller]
    pub fn then(self, step: St) -> StepDef<C, S, St>
    where
        Sub: EndsPlainly,
    {
        let at = Location::caller();
        self.nested(|_| Target { to: To::Step(step.clone()), at })
    }

    /// Ends the turn, or the loop if that is nested too, when the nested loop ends.
    #[track_caller]
    pub fn end(self) -> StepDef<C, S, St>
    where
        Sub: EndsPlainly,
        St: EndsPlainly,
    {
        let at = Location::caller();
        self.nested(|_| Target { to: To::End(0), at })
    }

    /// Maps each signal that the nested loop ends with to a target. `targets` is called when the loop
    /// is built, and only with signals that the nested loop ends with.
    pub fn route(
        self,
        mut targets: impl FnMut(Sub::End) -> Target<St, St::End>,
    ) -> StepDef<C, S, St> {
        self.nested(|with| match Sub::End::numbered(with) {
            Some(signal) => targets(signal).map(|step| step, LoopEnd::number),
            // Only a wrong manual `Signal` has a number that names none.
            None => Target { to: To::End(0), at: Location::caller() },
        })
    }

    fn nested(self, after: impl FnMut(usize) -> Target<St, usize>) -> StepDef<C, S, St> {
        StepDef { draft: self.draft.nested(&self.wrap, after) }
    }
}

impl<C: Context, S: State, St, Sub> fmt::Debug for NeedsEnds<C, S, St, Sub> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NeedsEnds(declared at {})", self.draft.work.at)
    }
}
