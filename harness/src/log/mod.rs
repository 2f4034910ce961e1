//! What a session's log says: its entries, and what they add up to.
//!
//! A session is the fold of its entries. Folding runs no user code: a commit holds what the
//! reducers *did*, as operations on JSON, and the name of the step its route chose. [`Saved`] is
//! the fold. The run that advances a session applies each entry it has appended to the same
//! `Saved`, so that what is live and what a log adds up to cannot drift apart.

mod codec;
mod digest;
mod entry;
mod error;
mod follow;
mod replay;
mod saved;

pub use crate::step::EffectScope;
pub use codec::MAX_ENTRY;
pub use digest::Digest;
pub(crate) use digest::Salt;
pub use entry::{
    Adopted, Asked, AttemptFailed, Committed, Diverted, EffectDone, Entry, EntryKind, Fingerprint,
    Finishing, HowEnded, HowSettled, Intent, Opened, Origin, Recovered, Reserved, Resolution,
    Resolved, RunStarted, Settled, StepKind,
};
pub use error::{EntryError, ReplayError};
pub(crate) use follow::Replay;
pub(crate) use saved::{Mark, Saved, SavedAnswer, SavedCursor, SavedParked, SavedQuestion};

/// The version of the format that this version of the library writes. It reads all up to this one.
pub const FORMAT: u32 = 1;

/// How much of a loop may have changed since a session was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fit {
    /// Everything that the session at its place does not depend on.
    #[default]
    Compatible,
    /// Nothing.
    Strict,
}
