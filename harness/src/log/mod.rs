//! What a session's log says: its entries, and what they add up to.
//!
//! A session is the fold of its entries. Folding runs no user code: a commit holds what the
//! reducers *did*, as operations on JSON, and the name of the step its route chose. `Saved` is
//! the fold. The run that advances a session applies each entry it has appended to the same
//! `Saved`, so that what is live and what a log adds up to cannot drift apart.

mod codec;
mod digest;
mod entry;
mod error;
mod fingerprint;
mod fit;
mod follow;
mod incompatible;
mod quick;
mod replay;
mod saved;

pub use crate::step::EffectScope;
pub use codec::MAX_ENTRY;
pub(crate) use codec::{check_ops, check_value};
pub use digest::Digest;
pub(crate) use digest::Salt;
pub use entry::{
    Adopted, Asked, AttemptFailed, Committed, Diverted, EffectDone, Entry, EntryKind, Fingerprint,
    Finishing, HowEnded, HowSettled, Intent, Opened, Origin, Recovered, Reserved, Resolution,
    Resolved, RunStarted, Settled, Snapshot, StepKind,
};
pub use error::{EntryError, ReplayError};
pub(crate) use fit::{Fitted, Successor, decode_state, fit, state_of};
pub use follow::Replay;
pub use incompatible::{Difference, Fit, Incompatible};
pub(crate) use saved::{
    Mark, Saved, SavedAnswer, SavedCursor, SavedFinishing, SavedMemory, SavedQuestion,
};

/// The version of the format that this version of the library writes. It reads all up to this one.
pub const FORMAT: u32 = 1;

#[cfg(test)]
mod tests;
