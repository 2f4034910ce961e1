//! The store of a run on an engine: each write waits until the engine has journalled it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};

use crate::id::{AgentId, SessionId};
use crate::inbox::Body;
use crate::run::{ChildStart, Elsewhere};
use crate::store::{
    Appended, Batch, Claimed, DueRequest, DueSessions, Filter, InboxSeq, Lease, Listing,
    MemoryStore, Message, Page, ReadRequest, Released, Remove, Sent, SessionStore, StoreError,
};

use super::write::Write;

/// A session in memory whose writes go through an engine.
pub(super) struct Journalled {
    session: SessionId,
    memory: MemoryStore,
    writes: mpsc::UnboundedSender<Pending>,
}

/// A write that is done in memory and not journalled.
pub(super) struct Pending {
    pub(super) write: Write,
    journalled: oneshot::Sender<()>,
}

impl Pending {
    /// Acknowledges the write.
    pub(super) fn acknowledge(self) {
        // A run that is dropped waits for nothing.
        let _ = self.journalled.send(());
    }
}

impl Journalled {
    /// The store, and the writes that wait.
    pub(super) fn new(
        session: SessionId,
        memory: MemoryStore,
    ) -> (Self, mpsc::UnboundedReceiver<Pending>) {
        let (writes, pending) = mpsc::unbounded_channel();
        (Self { session, memory, writes }, pending)
    }

    /// An invocation is of one session, and what it would write to another is in no journal.
    fn owns(&self, session: &SessionId) -> Result<(), StoreError> {
        match *session == self.session {
            true => Ok(()),
            false => Err(StoreError::Unsuitable(format!(
                "session `{:#}` is on an engine, which runs no other session for it (call no other \
                 agent from its steps, or keep it in a store)",
                self.session
            ))),
        }
    }

    async fn journal(
        &self,
        write: Result<Write, std::string::FromUtf8Error>,
    ) -> Result<(), StoreError> {
        let write =
            write.map_err(|error| StoreError::unavailable("an engine journals text", error))?;
        journal(&self.writes, write).await
    }

    /// What starts the children of the session.
    pub(super) fn starts_children(&self, refuses: Option<Refuses>) -> Arc<dyn Elsewhere> {
        Arc::new(Children { writes: self.writes.clone(), refuses })
    }
}

/// Waits until the engine has journalled a write.
async fn journal(writes: &mpsc::UnboundedSender<Pending>, write: Write) -> Result<(), StoreError> {
    let (journalled, wait) = oneshot::channel();
    // The invocation is given up with everything that it has in memory.
    let gone = || StoreError::unavailable("the invocation of the engine is over", "gave up");
    writes.send(Pending { write, journalled }).map_err(|_| gone())?;
    wait.await.map_err(|_| gone())
}

/// Children are sessions of the engine: an invocation of each runs it.
struct Children {
    writes: mpsc::UnboundedSender<Pending>,
    refuses: Option<Refuses>,
}

/// Says why a child of an agent, with runtime slots or without, cannot be started.
pub(super) type Refuses = Box<dyn Fn(&AgentId, bool) -> Option<String> + Send + Sync>;

#[async_trait]
impl Elsewhere for Children {
    async fn start(&self, child: ChildStart) -> Result<(), StoreError> {
        journal(&self.writes, Write::Start(Box::new(child))).await
    }

    fn refuses(&self, agent: &AgentId, slots: bool) -> Option<String> {
        self.refuses.as_ref().and_then(|refuses| refuses(agent, slots))
    }
}

#[async_trait]
impl SessionStore for Journalled {
    async fn claim(&self, session: &SessionId, ttl: Duration) -> Result<Claimed, StoreError> {
        self.owns(session)?;
        self.memory.claim(session, ttl).await
    }

    async fn claim_due(&self, _: &DueRequest, _: Duration) -> Result<DueSessions, StoreError> {
        // The engine decides when its session is invoked.
        Ok(DueSessions::default())
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<InboxSeq, StoreError> {
        self.memory.renew(lease, ttl).await
    }

    async fn release(&self, lease: &Lease, read: InboxSeq) -> Result<Released, StoreError> {
        self.memory.release(lease, read).await
    }

    async fn append(&self, lease: &Lease, batch: Batch<'_>) -> Result<Appended, StoreError> {
        let appended = self.memory.append(lease, batch).await?;
        self.journal(Write::append(&batch)).await?;
        Ok(appended)
    }

    async fn send(&self, to: &SessionId, messages: &[Message]) -> Result<Sent, StoreError> {
        if *to != self.session && messages.iter().all(is_notice) {
            // A parent is notified when the invocation has settled.
            return Ok(Sent::Accepted(InboxSeq(0)));
        }
        self.owns(to)?;
        let sent = self.memory.send(to, messages).await?;
        if matches!(sent, Sent::Accepted(_)) {
            self.journal(Write::send(messages)).await?;
        }
        Ok(sent)
    }

    async fn read(
        &self,
        session: &SessionId,
        request: ReadRequest,
    ) -> Result<Option<Page>, StoreError> {
        self.memory.read(session, request).await
    }

    async fn list(
        &self,
        filter: &Filter,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Listing, StoreError> {
        self.memory.list(filter, after, limit).await
    }

    async fn remove(&self, lease: &Lease, what: Remove) -> Result<(), StoreError> {
        self.memory.remove(lease, what).await
    }
}

/// Whether a message says that the turn of a child is over.
fn is_notice(message: &Message) -> bool {
    matches!(Body::read(message), Some(Body::Child { .. }))
}
