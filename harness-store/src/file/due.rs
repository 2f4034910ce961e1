//! Sessions that are due, and what wakes those that wait for one.
//!
//! To look at all logs each time would take the longer the more sessions there are. So a claim and a
//! message add a byte to a file in the same part of the directory, whose length counts such changes. A
//! look reads the counters before the logs, and looks only at the logs of parts that have changed and at
//! sessions that were held when it looked last.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use harness::store::{DueRequest, DueSessions, StoreError};
use harness::{SessionId, UtcMillis};

use super::candidate::{Candidate, DueCache};
use super::catalog::{Fingerprint, Place};
use super::disk::Mode;
use super::inner::Inner;
use super::paths::{CHANGES, Paths};
use super::session::{Session, State};

impl Inner {
    /// Counts a change after which other sessions may be due than before.
    pub(crate) fn count_change(&self, paths: &Paths) {
        // If this fails, other processes find it when they look at all logs.
        let file = self.disk.open(&paths.shard.join(CHANGES), Mode::AppendOrCreate);
        let _ = file.and_then(|file| file.write(b"."));
    }

    /// Ends the waits of this process if a session is due and free.
    pub(crate) fn notify_if_due(&self, session: &Session, state: &State) {
        let is_due = state.index.due_from().is_some_and(|from| from <= UtcMillis::now());
        if is_due && matches!(self.held_until(session, state), Ok(None)) {
            self.became_due.notify_waiters();
        }
    }

    pub(crate) fn claim_due(
        &self,
        request: &DueRequest,
        ttl: Duration,
    ) -> Result<DueSessions, StoreError> {
        let limit = usize::try_from(request.limit).unwrap_or(usize::MAX);
        let mut due = DueSessions::default();
        for (log, id) in self.find_due(request, &mut due)? {
            if due.claimed.len() >= limit {
                break;
            }
            match self.claim_if(&id, ttl, |index| {
                index.due_from().is_some_and(|from| from <= UtcMillis::now())
            }) {
                Ok(Some(claimed)) => due.claimed.push(claimed),
                Ok(None) | Err(StoreError::Busy { .. }) => {}
                Err(error) => due.failed.push((id, error)),
            }
            // It is held now, or is not what it was found to be.
            let mut cache = self.due.lock().unwrap_or_else(PoisonError::into_inner);
            cache.watched.insert(log);
        }
        Ok(due)
    }

    /// Looks at what may have changed, and returns what is asked for and due, held or not.
    fn find_due(
        &self,
        request: &DueRequest,
        due: &mut DueSessions,
    ) -> Result<Vec<(Arc<Path>, SessionId)>, StoreError> {
        let mut cache = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = Instant::now();
        // Before the names, which come before the logs: what comes later changes them again.
        let counted = self.counted();
        self.look()?;
        if cache.is_old() {
            let logs = self.next_logs(Place::Dividing(&[]), usize::MAX);
            let logs: HashSet<_> = logs.into_iter().map(|(_, log)| log).collect();
            for log in &logs {
                self.examine(&mut cache, log, due)?;
            }
            cache.looked_at_all(begun, &logs);
        } else {
            let mut logs = self.logs_in(|shard| {
                let now = counted.get(shard);
                now.is_none() || now != cache.counted.get(shard)
            });
            logs.extend(cache.watched.iter().cloned());
            for log in &logs {
                self.examine(&mut cache, log, due)?;
            }
        }
        cache.counted = counted;
        Ok(cache.due(request, UtcMillis::now()))
    }

    /// The counters of the parts of the directory that are known.
    fn counted(&self) -> HashMap<PathBuf, u64> {
        let catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        let count = |shard: &PathBuf| {
            let found = std::fs::metadata(shard.join(CHANGES));
            (shard.clone(), found.map_or(0, |found| found.len()))
        };
        catalog.shards.keys().map(count).collect()
    }

    /// The logs in these parts of the directory.
    fn logs_in(&self, wanted: impl Fn(&PathBuf) -> bool) -> HashSet<Arc<Path>> {
        let catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        let shards = catalog.shards.iter().filter(|(path, _)| wanted(path));
        let keys = shards.flat_map(|(_, shard)| shard.keys.values());
        keys.filter_map(|key| Some(Arc::clone(&catalog.logs.get(key)?.log))).collect()
    }

    /// Reads a log that has changed.
    fn examine(
        &self,
        cache: &mut DueCache,
        log: &Arc<Path>,
        due: &mut DueSessions,
    ) -> Result<(), StoreError> {
        // Before the log is read: what comes meanwhile makes it another.
        let Ok(found) = std::fs::metadata(log) else {
            cache.forget(log);
            return Ok(());
        };
        let fingerprint = Fingerprint::of(&found);
        let is_new = fingerprint.is_new();
        if cache.known.get(log) == Some(&fingerprint) {
            return Ok(());
        }
        let Some(id) = self.id_of(log)? else {
            // It may be just about to begin.
            cache.watched.insert(Arc::clone(log));
            return Ok(());
        };
        let session = self.session(&id);
        let mut state = session.lock();
        if let Err(error) = session.refresh(&*self.disk, &mut state) {
            due.failed.push((id, error));
            cache.watched.insert(Arc::clone(log));
            return Ok(());
        }
        let index = &state.index;
        let agent = index.summary.as_ref().map(|summary| summary.agent.clone());
        match index.due_from().zip(agent) {
            Some((from, agent)) => {
                cache.candidates.insert(Arc::clone(log), Candidate { id, agent, from });
            }
            None => drop(cache.candidates.remove(log)),
        }
        match &index.claim {
            Some(claim) if claim.owner != 0 => drop(cache.watched.insert(Arc::clone(log))),
            _ => drop(cache.watched.remove(log)),
        }
        if is_new {
            cache.watched.insert(Arc::clone(log));
        } else {
            cache.known.insert(Arc::clone(log), fingerprint);
        }
        Ok(())
    }
}
