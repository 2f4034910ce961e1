//! What is known of sessions that may be due.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use harness::id::AgentId;
use harness::store::DueRequest;
use harness::{SessionId, UtcMillis};

use super::catalog::Fingerprint;

/// How long the counters of changes are relied on. A process that ends between a record and its
/// counter has acknowledged nothing, so that what it has written may wait for so long.
const ALL: Duration = Duration::from_secs(60);

/// A session that is due at some time while its lease is free.
#[derive(Debug)]
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

    /// Those that are asked for and whose time has come, the longest due first, held or not.
    pub(crate) fn due(&self, request: &DueRequest, now: UtcMillis) -> Vec<(Arc<Path>, SessionId)> {
        let wanted = |it: &Candidate| {
            it.from <= now && request.agents.contains(&it.agent) && !request.except.contains(&it.id)
        };
        let mut due: Vec<_> = self.candidates.iter().filter(|(_, it)| wanted(it)).collect();
        due.sort_by(|(_, one), (_, other)| (one.from, &one.id).cmp(&(other.from, &other.id)));
        due.into_iter().map(|(log, it)| (Arc::clone(log), it.id.clone())).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_is_what_was_asked_for_in_the_order_of_its_time() {
        let mut cache = DueCache::default();
        let sessions =
            [("late", "a", 3), ("b", "a", 1), ("a", "a", 1), ("other", "b", 1), ("tried", "a", 1)];
        let id = |id: &str| SessionId::new(id).unwrap();
        for (name, agent, from) in sessions.into_iter().chain([("to-come", "a", 9)]) {
            let (agent, from) = (AgentId::new(agent), UtcMillis(from));
            let candidate = Candidate { id: id(name), agent, from };
            cache.candidates.insert(Arc::from(Path::new(name)), candidate);
        }
        let request = DueRequest::new([AgentId::new("a")]).except([id("tried")]);
        let due = cache.due(&request, UtcMillis(3)).into_iter().map(|(_, id)| id);
        assert_eq!(due.collect::<Vec<_>>(), ["a", "b", "late"].map(id));
    }
}
