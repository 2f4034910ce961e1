//! Claims of any session that needs somebody.

use std::time::Duration;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use crate::clock::UtcMillis;
use crate::id::{AgentId, SessionId};
use crate::store::{Claimed, Phase};

use super::Shared;
use super::session::Session;

/// When a session is due.
enum Due {
    Now,
    In(Duration),
    Never,
}

/// The shortest wait: the timer's own grain, so that nobody spins on a moment that has nearly come.
const GRAIN: Duration = Duration::from_millis(1);

impl Shared {
    pub(super) async fn claim_due(
        &self,
        agents: &[AgentId],
        wait: Duration,
        ttl: Duration,
    ) -> Option<Claimed> {
        if wait.is_zero() {
            return self.scan(agents, ttl).ok();
        }
        // `None` is farther away than the clock reaches.
        let end = Instant::now().checked_add(wait);
        // Listens before it looks: a session that becomes due in between is not overlooked.
        let mut changed = self.changed.subscribe();
        loop {
            let mut next = match self.scan(agents, ttl) {
                Ok(claimed) => return Some(claimed),
                Err(next) => next,
            };
            while let Some(id) = until(&mut changed, end, next).await? {
                match self.claim_if_due(&id, agents, ttl) {
                    Ok(claimed) => return Some(claimed),
                    Err(other) => next = earlier(next, other),
                }
            }
        }
    }

    /// Takes the first due session, or says when it is worth looking again.
    fn scan(&self, agents: &[AgentId], ttl: Duration) -> Result<Claimed, Option<Instant>> {
        let mut next = None;
        let mut found = Vec::new();
        for session in &self.sessions {
            match session.value().due(agents) {
                Due::Now => found.push(session.key().clone()),
                Due::In(left) => next = earlier(next, Instant::now().checked_add(left.max(GRAIN))),
                Due::Never => {}
            }
        }
        for id in found {
            // Somebody else may have been faster.
            match self.claim_if_due(&id, agents, ttl) {
                Ok(claimed) => return Ok(claimed),
                Err(other) => next = earlier(next, other),
            }
        }
        Err(next)
    }

    fn claim_if_due(
        &self,
        id: &SessionId,
        agents: &[AgentId],
        ttl: Duration,
    ) -> Result<Claimed, Option<Instant>> {
        let mut session = self.sessions.get_mut(id).ok_or(None)?;
        match session.due(agents) {
            Due::Now => Ok(self.hold(id, &mut session, ttl)),
            Due::In(left) => Err(Instant::now().checked_add(left.max(GRAIN))),
            Due::Never => Err(None),
        }
    }
}

fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

/// Waits until a session changes (which it names), or until it is worth looking at all of them
/// again; the outer `None` is the end of the wait.
async fn until(
    changed: &mut broadcast::Receiver<SessionId>,
    end: Option<Instant>,
    next: Option<Instant>,
) -> Option<Option<SessionId>> {
    let hint = async {
        match changed.recv().await {
            Ok(id) => Some(id),
            Err(RecvError::Lagged(_)) => None,
            // The store holds the sender, and it is borrowed.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    };
    let Some(at) = earlier(end, next) else {
        return Some(hint.await);
    };
    match tokio::time::timeout_at(at, hint).await {
        Ok(hint) => Some(hint),
        Err(_) if end.is_some_and(|end| end <= at) => None,
        Err(_) => Some(None),
    }
}

impl Session {
    fn due(&self, agents: &[AgentId]) -> Due {
        let Some(facts) = self.facts.as_ref().filter(|facts| agents.contains(&facts.agent)) else {
            // A session that is only claimed may be written yet, which is hinted at.
            return Due::Never;
        };
        if let Some(left) = self.held_for() {
            return Due::In(left);
        }
        if facts.phase == Phase::Running || facts.mail < self.mail() {
            return Due::Now;
        }
        let now = UtcMillis::now();
        match facts.due {
            Some(due) if due <= now => Due::Now,
            Some(due) => Due::In(Duration::from_millis(due.0 - now.0)),
            None => Due::Never,
        }
    }
}
