//! What the clones of a store share: where its calls go, and what it knows of sessions.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use harness::SessionId;
use harness::store::StoreError;
use rusqlite::Connection;
use tokio::sync::{Notify, oneshot};

use crate::local::liveness::Liveness;

use super::batch::walk;
use super::error::{Fault, ended};
use super::readers::{Read, consistently};
use super::row::Session;
use super::writer::{Call, Work};

/// How many sessions are remembered as checked.
const CHECKED: usize = 10_000;

/// What calls know, on whichever thread they run.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) liveness: Liveness,
    /// Up to which entry the log of a session was found sound, from its last snapshot on.
    checked: Mutex<HashMap<SessionId, (i64, u64)>>,
}

impl Known {
    pub(crate) fn new(liveness: Liveness) -> Self {
        Self { liveness, checked: Mutex::default() }
    }

    /// Checks the log of a session from its last snapshot on, as far as that was not done before.
    pub(crate) fn check(&self, conn: &Connection, session: &Session) -> Result<(), Fault> {
        let lock = || self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let checked = lock().get(&session.id).copied();
        let upto = checked.filter(|(made, _)| *made == session.made).map_or(0, |(_, upto)| upto);
        if upto >= session.head {
            return Ok(());
        }
        walk(conn, session, session.first.max(session.snapshot).max(upto + 1), |_| true)?;
        let mut checked = lock();
        if checked.len() >= CHECKED {
            checked.clear();
        }
        checked.insert(session.id.clone(), (session.made, session.head));
        Ok(())
    }
}

/// What the clones of a store share. When the last is dropped, its threads end.
pub(crate) struct Shared {
    pub(crate) path: PathBuf,
    pub(crate) known: Arc<Known>,
    /// Ends the waits of this process for sessions that are due.
    pub(crate) due: Notify,
    writes: Sender<Box<dyn Call>>,
    reads: Sender<Read>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new(
        path: PathBuf,
        known: Arc<Known>,
        writes: Sender<Box<dyn Call>>,
        reads: Sender<Read>,
    ) -> Self {
        Self { path, known, due: Notify::new(), writes, reads }
    }

    /// Does work in a transaction that writes, and answers after its commit. Once this was polled, the
    /// work is done, even if the future is dropped.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        session: &SessionId,
        flush: bool,
        bytes: u64,
        work: impl FnMut(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (to, answer) = oneshot::channel();
        let work = Work { work, session: session.clone(), flush, bytes, done: None, to };
        self.writes.send(Box::new(work)).map_err(|_| ended())?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Does work on one state of the database.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        session: Option<&SessionId>,
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (to, answer) = oneshot::channel();
        let session = session.cloned();
        let read = move |conn: &Connection| {
            let found = consistently(conn, work);
            // The caller may wait no more.
            let _ = to.send(found.map_err(|fault| fault.into_error(session.as_ref())));
        };
        self.reads.send(Box::new(read)).map_err(|_| ended())?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Checks a log that may be long before a transaction that writes needs it, which delays all others.
    pub(crate) async fn check(&self, session: &SessionId) -> Result<(), StoreError> {
        let (id, known) = (session.clone(), Arc::clone(&self.known));
        let check = move |conn: &Connection| match Session::find(conn, &id)? {
            Some(session) => known.check(conn, &session),
            None => Ok(()),
        };
        self.read(Some(session), check).await
    }
}
