//! Signals, which routes return.

/// Derives [`Signal`](trait@Signal) for an enum whose variants carry no data.
///
/// ```
/// use harness::Signal;
///
/// #[derive(Signal, Clone, Copy, Debug, PartialEq)]
/// enum Next { CallTools, Answer }
///
/// assert_eq!(Next::ALL, [Next::CallTools, Next::Answer]);
/// ```
pub use harness_macros::Signal;

/// A closed set of signals. A route returns one, and the loop's edges map each to the next step.
///
/// ```
/// use harness::Signal;
///
/// #[derive(Signal, Clone, Copy)]
/// enum Verdict { Accept, Reject }
///
/// assert_eq!(Verdict::NAME, "Verdict");
/// assert_eq!(Verdict::Reject.name(), "Reject");
/// assert_eq!(Verdict::Reject.index(), 1);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a signal",
    note = "write `#[derive(Signal, Clone, Copy)]` above the enum"
)]
pub trait Signal: Copy + Send + Sync + 'static {
    /// The name of the enum.
    const NAME: &'static str;

    /// Every signal, in the order of declaration.
    const ALL: &'static [Self];

    /// The name of the variant.
    fn name(self) -> &'static str;

    /// The index of the variant in [`ALL`](Self::ALL).
    fn index(self) -> usize;
}
