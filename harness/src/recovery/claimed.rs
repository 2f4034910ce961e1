//! A session that is held, and what its log and its inbox say.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::id::{Seq, SessionId};
use crate::inbox::{Unread, read_inbox_after, send_stop, stop_key, unread};
use crate::journal::{LeaseGuard, LeaseObserver, Read, ReadError, Start, read};
use crate::run::OnBusy;
use crate::session::Recorded;
use crate::store::{self, FormerHolder, InboxSeq, ReadRequest, Released, SessionStore, StoreError};

/// The waits between two tries to claim a session that is held.
const FIRST_WAIT: Duration = Duration::from_millis(5);
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// A session that is held, and what its log and its inbox say.
pub(super) struct Claimed {
    guard: LeaseGuard,
    head: Seq,
    since: u64,
    /// The session; `None` if it is new, or was moved out.
    pub(super) recorded: Option<Recorded>,
    /// Whether that is what the caller had read before.
    pub(super) known: bool,
    /// The messages that were not applied.
    pub(super) unread: Vec<Unread>,
    /// The last message that was read.
    inbox: InboxSeq,
    /// The last message that the session has applied or passed over.
    applied: InboxSeq,
    /// What the store knows of the holder before.
    pub(super) former: FormerHolder,
}

impl Claimed {
    /// Claims a session and reads it, as `patience` says. What was `known` of it is not read again
    /// if it is still the same.
    pub(super) async fn claim(
        store: &Arc<dyn SessionStore>,
        session: &SessionId,
        known: Option<Read>,
        ttl: Duration,
        patience: OnBusy,
        run: Arc<dyn LeaseObserver>,
    ) -> Result<Self, ReadError> {
        let mut wait = FIRST_WAIT;
        let (guard, claimed) = loop {
            match LeaseGuard::claim(store, session, ttl).await {
                Ok(claimed) => break claimed,
                Err(StoreError::Busy { .. }) if matches!(patience, OnBusy::Wait | OnBusy::Stop) => {
                    if patience == OnBusy::Stop {
                        Box::pin(send_stop(&**store, session)).await?;
                    }
                    sleep(wait).await;
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
                Err(error) => return Err(error.into()),
            }
        };
        Self::of(store, guard, claimed, known, run).await
    }

    /// Reads a session that was just claimed.
    pub(super) async fn of(
        store: &Arc<dyn SessionStore>,
        mut guard: LeaseGuard,
        claimed: store::Claimed,
        known: Option<Read>,
        run: Arc<dyn LeaseObserver>,
    ) -> Result<Self, ReadError> {
        let session = &guard.session().clone();
        guard.keep(Arc::clone(&run));
        let mut held = Self {
            guard,
            head: claimed.head,
            since: 0,
            recorded: None,
            known: false,
            unread: Vec::new(),
            inbox: claimed.inbox,
            applied: InboxSeq(0),
            former: claimed.former,
        };
        if claimed.head == Seq(0) {
            return Ok(held);
        }
        let known = known.filter(|known| known.head == claimed.head);
        match Box::pin(held.catch_up(&**store, session, known)).await {
            Ok(()) => {
                let stop = stop_key(held.guard.fence());
                if held.unread.iter().any(|message| message.key == stop) {
                    run.stop();
                }
                Ok(held)
            }
            Err(error) => {
                Box::pin(held.give_back()).await;
                Err(error)
            }
        }
    }

    /// Reads the messages after those that the session has applied.
    pub(super) async fn read_inbox(
        &mut self,
        store: &dyn SessionStore,
        applied: InboxSeq,
    ) -> Result<(), StoreError> {
        let session = self.guard.session();
        (self.unread, self.inbox) = read_inbox_after(store, session, applied).await?;
        Ok(())
    }

    /// Reads a session that is held; what is `known` of it only if it has changed.
    async fn catch_up(
        &mut self,
        store: &dyn SessionStore,
        session: &SessionId,
        known: Option<Read>,
    ) -> Result<(), ReadError> {
        if let Some(known) = known {
            let request = ReadRequest::messages_after(known.inbox());
            let page = store.read(session, request).await?;
            let same = |page: &crate::store::Page| {
                page.summary.inbox == known.counted && known.is_in(page)
            };
            if let Some(page) = page.filter(same) {
                self.known = true;
                let (messages, last) = (unread(page.messages), page.inbox);
                self.read(known, messages, last);
                return Ok(());
            }
        }
        if let Some(found) = read(store, session).await? {
            let (messages, last) = read_inbox_after(store, session, found.inbox()).await?;
            self.read(found, messages, last);
        }
        Ok(())
    }

    fn read(&mut self, mut found: Read, messages: Vec<Unread>, last: InboxSeq) {
        // Messages that were passed over are in no entry.
        self.applied = found.inbox();
        found.recorded.session.inbox = self.applied;
        self.head = found.head;
        self.since = found.since;
        self.recorded = Some(found.recorded);
        (self.unread, self.inbox) = (messages, last);
    }

    /// Releases the session as it was, once something was done about each message that was read. Says
    /// whether others came meanwhile.
    pub(super) async fn release(self) -> Released {
        self.guard.release(self.inbox).await
    }

    /// Releases the session, and leaves its messages to another run. Says whether there are any.
    pub(super) async fn give_back(self) -> Released {
        self.guard.release(self.applied).await
    }

    /// What a journal needs to write behind the log. `state` is the JSON that it replays to.
    pub(super) fn into_start(
        self,
        state: serde_json::Value,
        applied: InboxSeq,
    ) -> (LeaseGuard, Start) {
        let Self { guard, head, since, .. } = self;
        (guard, Start { state, inbox: applied, head, since })
    }
}
