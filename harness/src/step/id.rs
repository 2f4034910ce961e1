//! Step ids.

use std::borrow::Cow;

use crate::signal::Signal;

/// Derives [`StepId`](trait@StepId) for an enum with one variant per step.
///
/// ```
/// use harness::StepId;
///
/// #[derive(StepId, Clone, Debug, PartialEq, Eq)]
/// enum Step { Think, Act }
///
/// assert_eq!(Step::all(), [Step::Think, Step::Act]);
/// ```
///
/// # Options
///
/// - `nest`, on a variant that holds another step enum: nests that loop, for
///   [`define.nest(..)`](crate::Define::nest). Each of its steps is a step of this enum too, with
///   its name prefixed by the variant.
///
/// ```
/// # use harness::StepId;
/// # #[derive(StepId, Clone, Debug, PartialEq, Eq)]
/// # enum Step { Think, Act }
/// #[derive(StepId, Clone, Debug, PartialEq, Eq)]
/// enum Outer {
///     Plan,
///     #[step(nest)]
///     Work(Step),
/// }
///
/// assert_eq!(Outer::all(), [Outer::Plan, Outer::Work(Step::Think), Outer::Work(Step::Act)]);
/// assert_eq!(Outer::Work(Step::Act).name(), "Work/Act");
/// ```
///
/// - `ends = Verdict`, on the enum: the loop of these steps ends with a signal of that enum. It can
///   only be nested; the loop around it routes by the signal.
///
/// ```
/// # use harness::{Signal, StepId};
/// #[derive(Signal, Clone, Copy, Debug)]
/// enum Verdict { Good, Bad }
///
/// #[derive(StepId, Clone, Debug, PartialEq, Eq)]
/// #[step(ends = Verdict)]
/// enum Review { Read, Mark }
/// ```
///
/// - `alias = "Old"`, on a variant, any number of times: a former name of the step. Sessions saved
///   at that name resume at this step. On a variant with `nest`, a former name of the group.
///
/// ```
/// # use harness::StepId;
/// #[derive(StepId, Clone, Debug, PartialEq, Eq)]
/// enum Step {
///     #[step(alias = "Plan", alias = "Ponder")]
///     Think,
///     Act,
/// }
///
/// assert_eq!(Step::Think.aliases(), ["Plan", "Ponder"]);
/// ```
pub use harness_macros::StepId;

/// The closed set of the steps of a loop.
///
/// ```
/// use harness::StepId;
///
/// #[derive(StepId, Clone, Debug, PartialEq, Eq)]
/// enum Step { Think, Act }
///
/// assert_eq!(Step::NAME, "Step");
/// assert_eq!(Step::Act.name(), "Act");
/// assert_eq!(Step::Act.index(), 1);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name the steps of a loop",
    note = "write `#[derive(StepId, Clone, Debug, PartialEq)]` above the enum"
)]
pub trait StepId: Clone + PartialEq + std::fmt::Debug + Send + Sync + 'static {
    /// What the loop of these steps ends with: a [`Signal`], or `()`.
    type End: LoopEnd;

    /// The name of the enum.
    const NAME: &'static str;

    /// Every step, in the order of declaration.
    #[must_use]
    fn all() -> Vec<Self>;

    /// The name of the step.
    fn name(&self) -> Cow<'static, str>;

    /// The index of the step in [`all`](Self::all).
    fn index(&self) -> usize;

    /// Former names of the step. Sessions saved at one of them resume at this step. No alias is the
    /// name or an alias of another step.
    #[must_use]
    fn aliases(&self) -> Vec<Cow<'static, str>> {
        Vec::new()
    }
}

/// What a loop ends with: a signal, or nothing.
#[diagnostic::on_unimplemented(
    message = "a loop cannot end with `{Self}`",
    label = "not a signal",
    note = "write `#[derive(Signal, Clone, Copy)]` above the enum"
)]
pub trait LoopEnd: Copy + Send + Sync + 'static {
    #[doc(hidden)]
    fn number(self) -> usize;

    #[doc(hidden)]
    fn numbered(number: usize) -> Option<Self>;
}

impl LoopEnd for () {
    fn number(self) -> usize {
        0
    }

    fn numbered(_: usize) -> Option<Self> {
        Some(())
    }
}

#[diagnostic::do_not_recommend]
impl<Sig: Signal> LoopEnd for Sig {
    fn number(self) -> usize {
        self.index()
    }

    fn numbered(number: usize) -> Option<Self> {
        Self::ALL.get(number).copied()
    }
}
