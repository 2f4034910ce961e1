//! What the stores of one machine share: its disk, its clock, and which processes are alive.

pub(crate) mod clock;
pub(crate) mod disk;
pub(crate) mod error;
pub(crate) mod liveness;

/// When writes are synced, so that they survive a loss of power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sync {
    /// Before a write is acknowledged, if the caller asks for a flush.
    #[default]
    Flush,
    /// When the system does it. Acknowledged writes survive the end of the process, and may be lost
    /// with a loss of power. For tests, and for sessions that can be lost.
    Never,
}
