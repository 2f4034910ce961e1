//! Sessions as data: looking at them, answering and stopping them, deleting them, without the loops
//! whose sessions they are.

mod answer;
mod error;
mod fork;
mod list;
mod status;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::id::{Seq, SessionId};
use crate::journal::{OpenError, Read, ask_to_stop, read, read_letters, walk};
use crate::log::{Entry, ReplayError, Saved};
use crate::store::{InboxSeq, Lease, Page, ReadFrom, ReadRequest, Remove, SessionStore};

pub use crate::store::{Filter, Holder, Phase};
pub use error::SessionsError;
pub(crate) use error::{Kind, open_error};
pub(crate) use fork::fork;
pub use status::{
    HistoryPage, Moment, MomentPage, PendingInterrupt, PendingPage, Recorded, SessionPage,
    SessionRow, Status,
};

use error::store_error;

/// For how long a session is held to be deleted, pruned or made.
const HOLD: Duration = Duration::from_secs(30);

/// How many bytes of entries are read at once where few entries are asked for.
const PAGE: u64 = 256 << 10;

/// The sessions of a store, whosever they are: for dashboards, inboxes and housekeeping, in
/// programs that know neither the agents nor their states. Cheap to clone.
///
/// Nothing here runs a step. Sessions are advanced by the [`Agent`](crate::Agent) they belong to,
/// which also has their states with their type.
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
/// use harness::sessions::{Filter, Phase};
///
/// let store = MemoryStore::new();
/// let agent = harness.agent("mailer", ()).store(store.clone());
/// agent.run(Doc::update(), ()).session("letter-7").await?;
///
/// // Elsewhere, without the types:
/// let sessions = Sessions::new(store);
/// let inbox = sessions.pending_interrupts(&Filter::default(), None, 50).await?;
/// let waiting = &inbox.rows[0];
/// assert_eq!((waiting.session.as_str(), &*waiting.interrupt.name), ("letter-7", "send"));
///
/// let answer = Answers::json(waiting.interrupt.id.clone(), true.into()).by("sam");
/// let recorded = sessions.answer_json("letter-7", answer).await?;
/// assert!(recorded.open.is_empty());
/// assert_eq!(sessions.status("letter-7").await?.phase, Phase::Interrupted);
///
/// // Whoever runs the agent goes on with what was answered.
/// let ended = agent.resume("letter-7", Answers::none(), ()).await?.ended()?;
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

    /// The same, for a store that is shared already.
    pub fn shared(store: Arc<dyn SessionStore>) -> Self {
        Self { store }
    }

    /// How a session stands. Reads its log from the last snapshot on.
    ///
    /// # Errors
    /// The session [does not exist](SessionsError::is_not_found), or
    /// [is damaged](SessionsError::is_damaged); the store failed.
    pub async fn status(&self, session: impl AsRef<str>) -> Result<Status, SessionsError> {
        let session = SessionId::new(session)?;
        let read = self.read(&session).await?;
        let taken = read.saved.mail.max(read.counted);
        let (unread, _) = read_letters(&*self.store, &session, taken).await.map_err(store_error)?;
        Ok(Status::of(session, read, &unread))
    }

    /// The state of a session, as JSON.
    ///
    /// # Errors
    /// As of [`status`](Sessions::status).
    pub async fn state(&self, session: impl AsRef<str>) -> Result<Value, SessionsError> {
        let session = SessionId::new(session)?;
        Ok(self.read(&session).await?.saved.state)
    }

    /// The state of a session as it was right behind an entry of its log, as JSON. Runs no code of
    /// the loop: it is read off the log as it was written.
    ///
    /// # Errors
    /// There is [no such entry](SessionsError::is_no_such_entry), or it
    /// [was pruned](SessionsError::is_pruned); and as of [`status`](Sessions::status).
    pub async fn state_at(
        &self,
        session: impl AsRef<str>,
        seq: Seq,
    ) -> Result<Value, SessionsError> {
        let session = SessionId::new(session)?;
        Ok(saved_at(&*self.store, &session, seq).await?.state)
    }

    /// A part of a session's log, the oldest entries first: at most `limit` entries (at least 1 is
    /// meant) from `from` on. [`Seq`]`(0)` begins at the first.
    ///
    /// For the last entries, begin so many before the [`head`](Status::head).
    ///
    /// # Errors
    /// Entries from there on [were pruned](SessionsError::is_pruned); and as of
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
                    let source = ReplayError::from(error).at(stored.seq);
                    Kind::Replay { session: session.clone(), source }
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

    /// Asks the run that holds a session to stop at its next boundary, and does not wait for it.
    /// The run learns of it with its next commit, or when it renews its lease. Says whether anybody
    /// held the session; what has no holder needs no stop.
    ///
    /// # Errors
    /// The session [does not exist](SessionsError::is_not_found); the store failed.
    pub async fn stop(&self, session: impl AsRef<str>) -> Result<bool, SessionsError> {
        let session = SessionId::new(session)?;
        let asked = ask_to_stop(&*self.store, &session).await.map_err(store_error)?;
        if !asked {
            self.page(&session, ReadRequest::summary()).await?;
        }
        Ok(asked)
    }

    /// Deletes a session: its log, its questions, its letters. A session under the same id is
    /// another one from then on. One whose entries do not add up can be deleted too.
    ///
    /// # Errors
    /// A run [holds](SessionsError::is_busy) the session; it
    /// [does not exist](SessionsError::is_not_found); the store failed, or gives nobody a session
    /// that [is damaged](SessionsError::is_damaged) where the store itself sees it.
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

    /// Removes the entries of a session's log below `below`, as far as its last snapshot: what is
    /// needed to go on with it stays. Gives the first entry that is kept.
    ///
    /// # Errors
    /// A run [holds](SessionsError::is_busy) the session: nothing was removed; it
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
            Err(error) => Err(open_error(session, error)),
        }
    }

    async fn page(&self, session: &SessionId, request: ReadRequest) -> Result<Page, SessionsError> {
        let page = self.store.read(session, request).await;
        page.map_err(store_error)?.ok_or_else(|| Kind::NotFound(session.clone()).into())
    }

    /// Takes the lease of a session that exists.
    async fn claim(&self, session: &SessionId) -> Result<Lease, SessionsError> {
        // A claim makes what it does not find.
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

/// What a session's log adds up to right behind an entry.
pub(crate) async fn saved_at(
    store: &dyn SessionStore,
    session: &SessionId,
    seq: Seq,
) -> Result<Saved, SessionsError> {
    let walked =
        walk(store, session, ReadFrom::SnapshotBelow(seq), |place| match place.seq < seq {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        });
    let walked = walked.await.map_err(|error| open_error(session, error))?;
    let walked = walked.ok_or_else(|| Kind::NotFound(session.clone()))?;
    if walked.last != seq {
        return Err(Kind::NoSuchEntry { session: session.clone(), seq, head: walked.head }.into());
    }
    walked.saved.map_err(|error| open_error(session, OpenError::Replay(error)))
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}
