//! What is known of sessions that may be due.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use harness::id::AgentId;
use harness::{SessionId, UtcMillis};

use super::catalog::Fingerprint;

/// How long the counters of changes are relied on. A process that ends between a record and its
/// counter has acknowledged nothing, so that what it has written may wait for so long.
const ALL: Duration = Duration::from_secs(60);

/// A session that is due at some time while its lease is free.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) id: SessionId,
    pub(crate) agent: AgentId,
    pub(crate) from: UtcMillis,
}

/// What was found out about logs.
#[derive(Debug, Default)]
pub(crate) struct DueCache {
    /// What they were then.
    pub(crate) known: HashMap<Arc<Path>, Fingerprint>,
    pub(crate) candidates: HashMap<Arc<Path>, Candidate>,
    /// Those to look at each time: a holder writes without counting what it changes.
    pub(crate) watched: HashSet<Arc<Path>>,
    /// The counters of changes before the logs were looked at.
    pub(crate) counted: HashMap<PathBuf, u64>,
    all: Option<Instant>,
}

impl DueCache {
    /// Whether all logs have to be looked at.
    pub(crate) fn is_old(&self) -> bool {
        self.all.is_none_or(|at| at.elapsed() >= ALL)
    }

    /// All logs were looked at; these are all.
    pub(crate) fn looked_at_all(&mut self, begun: Instant, logs: &HashSet<Arc<Path>>) {
        self.all = Some(begun);
        self.known.retain(|log, _| logs.contains(log));
        self.candidates.retain(|log, _| logs.contains(log));
        self.watched.retain(|log| logs.contains(log));
    }

    pub(crate) fn forget(&mut self, log: &Path) {
        self.known.remove(log);
        self.candidates.remove(log);
        self.watched.remove(log);
    }

    /// Those whose time has come, the longest due first.
    pub(crate) fn due(&self, now: UtcMillis) -> Vec<(Arc<Path>, Candidate)> {
        let due = self.candidates.iter().filter(|(_, candidate)| candidate.from <= now);
        let mut due: Vec<_> = due.map(|(log, it)| (Arc::clone(log), it.clone())).collect();
        due.sort_by(|(_, one), (_, other)| (one.from, &one.id).cmp(&(other.from, &other.id)));
        due
    }
}
