//! When entries are appended, and when commits are made durable.

/// When commits are made durable. Whatever the mode: everything before is durable when an effect
/// acts, when an interrupt is asked, when a step acts on an answer and when a run settles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Durability {
    /// Each commit, before the next step begins.
    #[default]
    Step,
    /// Within 100 milliseconds: a crash repeats at most the steps of that time.
    Relaxed,
    /// When the run settles: a crash repeats all steps since it began, or since it last acted
    /// outside.
    Settle,
}

/// When entries are appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// As the durability of the journal says.
    Mode,
    /// Now; they need not survive a loss of power.
    Kept,
    /// Now, and durably, with everything before.
    Now,
}
