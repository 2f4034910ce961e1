//! Sessions that are due, and what wakes those that wait for one.

use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use harness::UtcMillis;
use harness::store::{DueRequest, DueSessions, StoreError};

use super::candidate::Candidate;
use super::catalog::{Fingerprint, Place};
use super::inner::Inner;
use super::session::{Session, State};

impl Inner {
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
        self.look()?;
        let mut due = DueSessions::default();
        for (_, log) in self.next_logs(Place::Dividing(&[]), usize::MAX) {
            if due.claimed.len() >= limit {
                break;
            }
            let Some(Candidate { id, agent, from }) = self.candidate(&log, &mut due)? else {
                continue;
            };
            let wanted = request.agents.contains(&agent) && !request.except.contains(&id);
            if !wanted || from > UtcMillis::now() {
                continue;
            }
            match self.claim_if(&id, ttl, |index| {
                index.due_from().is_some_and(|from| from <= UtcMillis::now())
            }) {
                Ok(Some(claimed)) => due.claimed.push(claimed),
                Ok(None) | Err(StoreError::Busy { .. }) => {}
                Err(error) => due.failed.push((id, error)),
            }
        }
        Ok(due)
    }

    /// What is known of a log, which is read if it has changed.
    fn candidate(
        &self,
        log: &Arc<Path>,
        due: &mut DueSessions,
    ) -> Result<Option<Candidate>, StoreError> {
        // Before the log is read: what comes meanwhile makes it another.
        let Ok(found) = std::fs::metadata(log) else { return Ok(None) };
        let fingerprint = Fingerprint::of(&found);
        let lock = || self.due.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, candidate)) = lock().get(log)
            && *known == fingerprint
        {
            return Ok(candidate.clone());
        }
        let Some(id) = self.id_of(log)? else { return Ok(None) };
        let session = self.session(&id);
        let mut state = session.lock();
        if let Err(error) = session.refresh(&*self.disk, &mut state) {
            due.failed.push((id, error));
            return Ok(None);
        }
        let index = &state.index;
        let agent = index.summary.as_ref().map(|summary| summary.agent.clone());
        let candidate =
            index.due_from().zip(agent).map(|(from, agent)| Candidate { id, agent, from });
        lock().insert(Arc::clone(log), (fingerprint, candidate.clone()));
        Ok(candidate)
    }
}
