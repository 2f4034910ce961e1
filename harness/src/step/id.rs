//! Which step.

use std::borrow::Cow;

/// Derives [`StepId`](trait@StepId) for an enum with one variant a step.
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
/// - `nest`, on a variant that holds another enum of steps: the steps of that loop, for
///   [`define.nest(..)`](crate::Define::nest). Each is a step of this enum too, below the name of
///   the variant.
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
/// - `alias = "Old"`, on a variant, any number of times: a name that the step had before, so that
///   sessions that were saved at it are found again. On a variant with `nest`, a name that the
///   whole group had.
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

    /// The place of the step in [`all`](Self::all).
    fn index(&self) -> usize;

    /// Names that the step had before: a session that stands at one of them stands at this step.
    /// None of them is the name or an alias of another step.
    #[must_use]
    fn aliases(&self) -> Vec<Cow<'static, str>> {
        Vec::new()
    }
}
