//! Whether a loop can resume a session, perhaps one that an older version of it has written.

mod check;
mod fingerprint;
mod fit;
mod identity;
mod incompatible;

pub(crate) use check::{Compatible, TargetVersion, check, decode_state, state_of};
pub use fit::{Affected, Fit, FitSummary};
pub(crate) use identity::LoopIdentity;
pub use incompatible::{Compatibility, Difference, Incompatible};
