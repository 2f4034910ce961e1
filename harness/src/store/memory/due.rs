//! Which sessions may be due, by agent and time.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::clock::UtcMillis;
use crate::id::{AgentId, SessionId};
use crate::store::{DueRequest, DueSessions};

use super::Shared;
use super::session::Session;

/// How many sessions are looked at in one go, without holding up those that change.
const CHUNK: usize = 64;

type Place = (UtcMillis, SessionId);

/// The sessions that are due at some time while their lease is free, in the order of that time.
/// Locked only inside of the lock of a session, or alone.
#[derive(Default)]
pub(super) struct DueIndex {
    places: Mutex<HashMap<AgentId, BTreeSet<Place>>>,
    changed: Notify,
}

impl DueIndex {
    fn places(&self) -> MutexGuard<'_, HashMap<AgentId, BTreeSet<Place>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when a session may have become due since its first poll.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Ends all waits: a session whose lease is free may have become due.
    pub(super) fn notify(&self) {
        self.changed.notify_waiters();
    }

    /// Puts a session where it belongs after it has changed.
    pub(super) fn update(&self, id: &SessionId, session: &mut Session) {
        let from = session.due_from();
        if session.place.as_ref().map(|(_, at)| *at) == from {
            return;
        }
        self.remove(id, session);
        let agent = session.summary.as_ref().map(|summary| summary.agent.clone());
        if let (Some(agent), Some(from)) = (agent, from) {
            self.places().entry(agent.clone()).or_default().insert((from, id.clone()));
            session.place = Some((agent, from));
        }
    }

    /// Takes a session out.
    pub(super) fn remove(&self, id: &SessionId, session: &mut Session) {
        let Some((agent, from)) = session.place.take() else { return };
        let mut places = self.places();
        if let Some(of_agent) = places.get_mut(&agent) {
            of_agent.remove(&(from, id.clone()));
            if of_agent.is_empty() {
                places.remove(&agent);
            }
        }
    }

    /// The next sessions of an agent that are due at `now`, unless they are held.
    fn next(&self, agent: &AgentId, after: Option<&Place>, now: UtcMillis) -> Vec<Place> {
        let places = self.places();
        let Some(of_agent) = places.get(agent) else { return Vec::new() };
        let begin = after.map_or(Unbounded, Excluded);
        let found = of_agent.range((begin, Unbounded)).take(CHUNK);
        found.take_while(|(from, _)| *from <= now).cloned().collect()
    }
}

impl Shared {
    pub(super) fn claim_due(&self, request: &DueRequest, ttl: Duration) -> DueSessions {
        let limit = usize::try_from(request.limit).unwrap_or(usize::MAX);
        let now = UtcMillis::now();
        let mut due = DueSessions::default();
        for agent in &request.agents {
            let mut after = None;
            while due.claimed.len() < limit {
                let found = self.due.next(agent, after.as_ref(), now);
                let Some(last) = found.last() else { break };
                after = Some(last.clone());
                let wanted = found.iter().filter(|(_, id)| !request.except.contains(id));
                for (_, id) in wanted {
                    if due.claimed.len() == limit {
                        break;
                    }
                    let Some(mut session) = self.sessions.get_mut(id) else { continue };
                    let is_due = session.due_from().is_some_and(|from| from <= now);
                    if is_due && session.held_for().is_none() {
                        due.claimed.push(self.hold(id, &mut session, ttl));
                    }
                }
            }
        }
        due
    }
}
