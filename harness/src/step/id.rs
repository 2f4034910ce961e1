//! Step ids.

use std::borrow::Cow;

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
