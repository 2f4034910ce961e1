//! Sessions as data: read them, answer their interrupts, stop and delete them, without their loops.

mod answer;
mod correct;
mod edit;
mod error;
mod fork;
mod list;
mod prune;
#[cfg(feature = "report")]
pub mod report;
mod status;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::id::{Seq, SessionId};
use crate::inbox::{read_inbox_after, send_stop};
use crate::journal::{Read, ReadError, read, walk};
use crate::session::{Entry, Recorded, ReplayError};
use crate::store::{InboxSeq, Lease, Page, ReadFrom, ReadRequest, Remove, SessionStore};

pub use crate::store::{Filter, Holder, Phase};
pub(crate) use edit::edit;
pub use error::SessionsError;
pub(crate) use error::{Kind, read_error};
pub(crate) use fork::fork;
pub use prune::{PrunePolicy, PruneReport};
pub use status::{
    HistoryPage, InterruptPage, Moment, MomentPage, PendingTimer, RecordedAnswers,
    SessionInterrupt, SessionPage, SessionRow, Status,
};

use error::store_error;

/// The duration of the lease under which a session is deleted, pruned or created.
const HOLD: Duration = Duration::from_secs(30);

/// The bytes of entries to read at once where few entries are requested.
const PAGE: u64 = 256 << 10;

/// All sessions of a store, of any agent: for dashboards, approval queues and maintenance, in
/// programs that know neither the agents nor their states. Cheap to clone.
///
/// Nothing here runs a step. The [`Agent`](crate::Agent) of a session advances it, and reads its
/// state with its type.
///
/// ```
/// # use harness::prelude::*;
/// # use harness::store::MemoryStore;
/// # #[derive(State, Clone, Debug, Default, Serialize, Deserialize)] struct Doc { sent: bool }
/// # #[derive(Question, Serialize, Deserialize)] #[question(answer = bool)] struct Send { to: String }
/// # #[derive(StepId, Clone, Debug, PartialEq, Eq)] enum Step { Ask }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let harness = Harness::<(), Doc>::builder("d").start(Step::Ask).steps(|define, step| match step {
/// #     Step::Ask => define
/// #         .ask(|_doc, _cx| async move { Ok(Send { to: "all".into() }) })
/// #         .answer(|_doc, _cx, said| async move { Ok(Doc::update().sent(said.answer)) }).end(),
/// # }).build()?;
/// use harness::Sessions;
/// use harness::inspect::Phase;
///
/// let store = MemoryStore::new();
/// let agent = harness.agent("notices", ()).store(store.clone());
/// agent.run(Doc::update(), ()).session("notice-7").await?;
///
/// // In another program, without the types:
/// let sessions = Sessions::new(store);
/// let open = sessions.pending_interrupts().await?;
/// let waiting = &open.rows[0];
/// assert_eq!((waiting.session.as_str(), &*waiting.interrupt.name), ("notice-7", "send"));
///
/// let answer = Answers::json(waiting.interrupt.id.clone(), true.into()).by("sam");
/// let recorded = sessions.answer_json("notice-7", answer).await?;
/// assert!(recorded.open.is_empty());
/// assert_eq!(sessions.status("notice-7").await?.phase, Phase::Interrupted);
///
/// // The next run of the agent applies the answer.
/// let ended = agent.resume("notice-7", Answers::none(), ()).await?.ended()?;
/// assert!(ended.state.sent);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Sessions {
    store: Arc<dyn SessionStore>,
}

impl Sessions {
    /// The sessions in `store`.
    pub fn new(store: impl SessionStore) -> Self {
        Self::shared(Arc::new(store))
    }

    /// [`new`](Sessions::new) for a store that is already shared.
    pub fn shared(store: Arc<dyn SessionStore>) -> Self {
        Self { store }
    }

    /// The status of a session. Reads its log from the last snapshot on.
    ///
    /// # Errors
    /// The session [does not exist](SessionsError::is_not_found), or
    /// [is damaged](SessionsError::is_damaged); the store failed.
    pub async fn status(&self, session: impl AsRef<str>) -> Result<Status, SessionsError> {
        let session = SessionId::new(session)?;
        let read = self.read(&session).await?;
        let (unread, _) =
            read_inbox_after(&*self.store, &session, read.inbox()).await.map_err(store_error)?;
        Ok(Status::of(session, read, &unread))
    }

    /// The state of a session, as JSON.
    ///
    /// # Errors
    /// Those of [`status`](Sessions::status).
    pub async fn state(&self, session: impl AsRef<str>) -> Result<Value, SessionsError> {
        let session = SessionId::new(session)?;
        Ok(self.read(&session).await?.recorded.state)
    }

    /// The state of a session after an entry of its log, as JSON. Runs no code of the loop: the log
    /// is folded as it was written.
    ///
    /// # Errors
    /// [No such entry](SessionsError::is_no_such_entry), or it
    /// [was pruned](SessionsError::is_pruned). Also those of [`status`](Sessions::status).
    pub async fn state_at(
        &self,
        session: impl AsRef<str>,
        seq: Seq,
    ) -> Result<Value, SessionsError> {
        let session = SessionId::new(session)?;
        Ok(recorded_at(&*self.store, &session, seq).await?.state)
    }

    /// A part of a session's log, oldest entries first: at most `limit` entries (at least 1), from
    /// `from` on. [`Seq`]`(0)` starts at the first. The last entry is the [`head`](Status::head).
    ///
    /// # Errors
    /// Entries from there on [were pruned](SessionsError::is_pruned). Also those of
    /// [`status`](Sessions::status).
    pub async fn history(
        &self,
        session: impl AsRef<str>,
        from: Seq,
        limit: usize,
    ) -> Result<HistoryPage, SessionsError> {
        let session = SessionId::new(session)?;
        let mut entries = Vec::new();
        let mut at = from;
        loop {
            let page = self.page(&session, ReadRequest::from(at).limit(PAGE)).await?;
            for stored in page.entries {
                if entries.len() >= limit.max(1) {
                    let (first, head, next) = (page.first, page.head, Some(stored.seq));
                    return Ok(HistoryPage { entries, next, first, head });
                }
                let entry = Entry::decode(&stored.bytes).map_err(|error| {
                    let cause = ReplayError::from(error).at(stored.seq);
                    Kind::Replay { session: session.clone(), cause }
                })?;
                entries.push((stored.seq, entry));
            }
            match page.next {
                Some(next) if entries.len() < limit.max(1) => at = next,
                next => {
                    let (first, head) = (page.first, page.head);
                    return Ok(HistoryPage { entries, next, first, head });
                }
            }
        }
    }

    /// Asks the run that holds a session to stop at its next boundary, and does not wait for it. The
    /// run reads the request with its next commit, or when it renews its lease. Returns whether a
    /// run holds the session; otherwise there is nothing to stop.
    ///
    /// # Errors
    /// The session [does not exist](SessionsError::is_not_found); the store failed.
    pub async fn stop(&self, session: impl AsRef<str>) -> Result<bool, SessionsError> {
        let session = SessionId::new(session)?;
        let asked = send_stop(&*self.store, &session).await.map_err(store_error)?;
        if !asked {
            self.page(&session, ReadRequest::summary()).await?;
        }
        Ok(asked)
    }

    /// Deletes a session: its log, its interrupts and its inbox messages. A later session with the
    /// same id is a new one. A session whose log does not replay can be deleted too.
    ///
    /// # Errors
    /// A run [holds](SessionsError::is_busy) the session; it
    /// [does not exist](SessionsError::is_not_found); the store failed, or refuses the claim because
    /// it finds the session [damaged](SessionsError::is_damaged) itself.
    pub async fn delete(&self, session: impl AsRef<str>) -> Result<(), SessionsError> {
        let session = SessionId::new(session)?;
        let lease = self.claim(&session).await?;
        match self.store.remove(&lease, Remove::All).await {
            Ok(()) => Ok(()),
            Err(error) => {
                self.release(&lease).await;
                Err(store_error(error))
            }
        }
    }

    /// Removes the entries of a session's log before `below`, but at most those before its last
    /// snapshot, so that the session can still be resumed. Returns the first entry that is kept.
    ///
    /// # Errors
    /// A run [holds](SessionsError::is_busy) the session; it
    /// [does not exist](SessionsError::is_not_found); the store failed.
    pub async fn prune(&self, session: impl AsRef<str>, below: Seq) -> Result<Seq, SessionsError> {
        let session = SessionId::new(session)?;
        let lease = self.claim(&session).await?;
        let removed = self.store.remove(&lease, Remove::Below(below)).await;
        self.release(&lease).await;
        removed.map_err(store_error)?;
        Ok(self.page(&session, ReadRequest::summary()).await?.first)
    }

    async fn read(&self, session: &SessionId) -> Result<Read, SessionsError> {
        match read(&*self.store, session).await {
            Ok(Some(read)) => Ok(read),
            Ok(None) => Err(Kind::NotFound(session.clone()).into()),
            Err(error) => Err(read_error(session, error)),
        }
    }

    async fn page(&self, session: &SessionId, request: ReadRequest) -> Result<Page, SessionsError> {
        let page = self.store.read(session, request).await;
        page.map_err(store_error)?.ok_or_else(|| Kind::NotFound(session.clone()).into())
    }

    /// Claims a session that exists.
    async fn claim(&self, session: &SessionId) -> Result<Lease, SessionsError> {
        // A claim creates a session that does not exist.
        match self.page(session, ReadRequest::summary()).await {
            Err(error) if !error.is_damaged() => return Err(error),
            _ => {}
        }
        let claimed = self.store.claim(session, HOLD).await.map_err(store_error)?;
        let gone = || Kind::NotFound(session.clone());
        if claimed.head == Seq(0) {
            self.release(&claimed.lease).await;
            return Err(gone().into());
        }
        Ok(claimed.lease)
    }

    async fn release(&self, lease: &Lease) {
        // It expires by itself if this fails.
        let _ = self.store.release(lease, InboxSeq(0)).await;
    }
}

/// A session after an entry of its log.
pub(crate) async fn recorded_at(
    store: &dyn SessionStore,
    session: &SessionId,
    seq: Seq,
) -> Result<Recorded, SessionsError> {
    let walked =
        walk(store, session, ReadFrom::SnapshotBelow(seq), |place| match place.seq < seq {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        });
    let walked = walked.await.map_err(|error| read_error(session, error))?;
    let walked = walked.ok_or_else(|| Kind::NotFound(session.clone()))?;
    if walked.last != seq {
        return Err(Kind::NoSuchEntry { session: session.clone(), seq, head: walked.head }.into());
    }
    walked.recorded.map_err(|error| read_error(session, ReadError::Replay(error)))
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}
