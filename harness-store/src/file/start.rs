//! Where a reader of a long log can start: the fold of the log just before its last snapshot, in a
//! small file beside it.
//!
//! Reading from the last snapshot on needs nothing else of what comes before, so the cost of opening a
//! session does not grow with its age. A call that needs more reads the log from its beginning, and
//! checks that it is the same log.
//!
//! It is used only if the log begins with the same header, the record of the snapshot is where it
//! says, and nothing before that can be lost any more: it is written once that is durable. Where
//! nothing is synced, it holds until the machine restarts. Otherwise one reader could see what a loss
//! of power has left of the log, and another what it was before.
//!
//! So damage before the snapshot is reported only to calls that read there; damage from the snapshot
//! on is reported to all.

use harness::UtcMillis;
use harness::store::{OpenInterrupt, SessionSummary};
use serde::{Deserialize, Serialize};

pub(crate) use crate::local::clock::boot_id;

use super::record::MessageText;

/// How much of a log must lie before a snapshot, and between two, so that it pays to start there.
pub(crate) const WORTH: u64 = 64 * 1024;

/// The most bytes of messages that are kept here. With more, the log is read from its beginning.
pub(crate) const MAX_MESSAGES: usize = 16 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Start {
    pub(crate) epoch: String,
    pub(crate) rewritten: u64,
    /// Where the record of the snapshot stands, how long it is, and its checksum.
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) record: u32,
    /// The checksum of all before it.
    pub(crate) sum: u32,
    pub(crate) torn: u64,
    pub(crate) named: bool,
    pub(crate) fence: u64,
    pub(crate) token: String,
    pub(crate) owner: u64,
    pub(crate) until: u64,
    pub(crate) first: u64,
    pub(crate) head: u64,
    pub(crate) created: UtcMillis,
    pub(crate) updated: UtcMillis,
    pub(crate) summary: SessionSummary,
    pub(crate) interrupts: Vec<OpenInterrupt>,
    pub(crate) messages: Vec<MessageText>,
    /// The start of the machine until whose end it holds; if there is none, it was durable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) boot: Option<String>,
}
