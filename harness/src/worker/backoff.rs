//! Sessions that a worker could not run: it waits longer and longer before it tries them again.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::id::{AgentId, SessionId};

/// The wait after the first failure, which doubles with each further one.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(300);

/// How many sessions are remembered.
const MOST: usize = 1_000;

/// A session that a worker could not run, and tries again later.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedSession {
    /// The agent; `None` if the store reported the failure, which may concern any agent served.
    pub agent: Option<AgentId>,
    /// The session.
    pub session: SessionId,
    /// Why, in words.
    pub reason: String,
    /// How often it was tried without success.
    pub tries: u32,
    /// How long until the next try.
    pub again_in: Duration,
}

struct Failing {
    agent: Option<AgentId>,
    reason: String,
    tries: u32,
    until: Instant,
}

#[derive(Default)]
pub(super) struct BackOff {
    failing: HashMap<SessionId, Failing>,
}

impl BackOff {
    /// Notes a failure.
    pub(super) fn failed(&mut self, session: &SessionId, agent: Option<AgentId>, reason: String) {
        let now = Instant::now();
        if self.failing.len() >= MOST && !self.failing.contains_key(session) {
            // One that may be tried already is forgotten first.
            let next = self.failing.iter().min_by_key(|(_, failing)| failing.until);
            if let Some(next) = next.map(|(next, _)| next.clone()) {
                self.failing.remove(&next);
            }
        }
        let tries = self.failing.get(session).map_or(0, |failing| failing.tries) + 1;
        let wait = FIRST.saturating_mul(1 << (tries - 1).min(16)).min(LONGEST);
        let until = now + wait;
        self.failing.insert(session.clone(), Failing { agent, reason, tries, until });
    }

    /// Notes a success.
    pub(super) fn succeeded(&mut self, session: &SessionId) {
        self.failing.remove(session);
    }

    /// The sessions that are not to be tried now.
    pub(super) fn waiting(&self) -> Vec<SessionId> {
        let now = Instant::now();
        let waiting = self.failing.iter().filter(|(_, failing)| failing.until > now);
        waiting.map(|(session, _)| session.clone()).collect()
    }

    /// Whether no more failures can be remembered, so that what fails is tried again too early.
    pub(super) fn is_full(&self) -> bool {
        self.failing.len() >= MOST
    }

    pub(super) fn list(&self) -> Vec<FailedSession> {
        let now = Instant::now();
        let failed = self.failing.iter().map(|(session, failing)| FailedSession {
            agent: failing.agent.clone(),
            session: session.clone(),
            reason: failing.reason.clone(),
            tries: failing.tries,
            again_in: failing.until.saturating_duration_since(now),
        });
        let mut failed: Vec<_> = failed.collect();
        failed.sort_by(|one, other| one.session.cmp(&other.session));
        failed
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn id(number: usize) -> SessionId {
        SessionId::new(format!("s{number}")).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_doubles_up_to_five_minutes_and_ends_with_a_success() {
        let mut failing = BackOff::default();
        for seconds in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
            failing.failed(&id(1), None, "x".into());
            let [one] = &failing.list()[..] else { panic!() };
            assert_eq!(one.again_in, Duration::from_secs(seconds));
            tokio::time::advance(one.again_in - Duration::from_millis(1)).await;
            assert_eq!(failing.waiting(), [id(1)]);
            tokio::time::advance(Duration::from_millis(1)).await;
            assert_eq!(failing.waiting(), []);
        }
        failing.succeeded(&id(1));
        assert_eq!(failing.list(), []);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_is_bounded() {
        let mut failing = BackOff::default();
        for number in 0..2 * MOST {
            assert_eq!(failing.is_full(), number >= MOST);
            failing.failed(&id(number), None, String::new());
        }
        assert_eq!(failing.list().len(), MOST);
    }
}
