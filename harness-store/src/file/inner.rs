//! What the clones of a store share: its disk, its directory, its open sessions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use harness::SessionId;
use tokio::sync::Notify;

pub(crate) use crate::local::Sync;

use super::candidate::DueCache;
use super::catalog::Catalog;
use super::disk::Disk;
use super::liveness::Liveness;
use super::paths::Paths;
use super::place::Place;
use super::session::Session;
use super::threads::Threads;

/// What the clones of a store share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) sessions: PathBuf,
    pub(crate) sync: Sync,
    pub(crate) place: Arc<Place>,
    pub(crate) liveness: Liveness,
    pub(crate) threads: Threads,
    pub(crate) open: Mutex<Open>,
    pub(crate) open_files: usize,
    pub(crate) catalog: Mutex<Catalog>,
    pub(crate) due: Mutex<DueCache>,
    /// Ends the waits of this process for sessions that are due.
    pub(crate) became_due: Notify,
}

/// The sessions in use, and when each was used last.
#[derive(Debug, Default)]
pub(crate) struct Open {
    sessions: HashMap<SessionId, (u64, Arc<Session>)>,
    clock: u64,
}

impl Inner {
    /// The path of a session's log. The id may hold any character, so its hash names the file.
    pub(crate) fn log_path(&self, id: &SessionId) -> PathBuf {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digest = hmac_sha256::Hash::hash(id.as_str().as_bytes());
        let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        let name: String = digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect();
        let (shard, rest) = name.split_at(2);
        self.sessions.join(shard).join(format!("{rest}.log"))
    }

    pub(crate) fn session(&self, id: &SessionId) -> Arc<Session> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.clock += 1;
        let now = open.clock;
        if let Some((used, session)) = open.sessions.get_mut(id) {
            *used = now;
            return Arc::clone(session);
        }
        if open.sessions.len() >= self.open_files {
            // A quarter at a time, so that many calls share the cost of finding the oldest.
            let mut used: Vec<u64> = open.sessions.values().map(|(used, _)| *used).collect();
            used.sort_unstable();
            let oldest = used.get(used.len() / 4).copied().unwrap_or(now);
            open.sessions.retain(|_, (used, session)| {
                *used > oldest || Arc::strong_count(session) > 1 || session.must_stay()
            });
        }
        let session = Arc::new(self.unopened(id.clone(), &self.log_path(id)));
        open.sessions.insert(id.clone(), (now, Arc::clone(&session)));
        session
    }

    /// A session that no other call finds.
    pub(crate) fn unopened(&self, id: SessionId, log: &Path) -> Session {
        Session::new(id, Paths::of_log(log), Arc::clone(&self.place))
    }

    /// Closes the logs that no call uses. Says whether there were any.
    pub(crate) fn close_idle(&self) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let before = open.sessions.len();
        open.sessions
            .retain(|_, (_, session)| Arc::strong_count(session) > 1 || session.must_stay());
        open.sessions.len() < before
    }

    /// Whether the log of a session is open, so that a short write to it waits for nothing else.
    pub(crate) fn is_ready(&self, id: &SessionId) -> bool {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.sessions.get(id).is_some_and(|(_, session)| session.is_open())
    }
}
