//! What is known of sessions that may be due.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use harness::id::AgentId;
use harness::{SessionId, UtcMillis};

use super::catalog::Fingerprint;

/// What was found out about logs, and what they were then.
pub(crate) type DueCache = HashMap<Arc<Path>, (Fingerprint, Option<Candidate>)>;

/// A session that is due at some time while its lease is free.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) id: SessionId,
    pub(crate) agent: AgentId,
    pub(crate) from: UtcMillis,
}
