//! What a clause has at hand.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::clock::UtcMillis;
use crate::id::{AgentId, InterruptId, Seq, SessionId};
use crate::store::{
    Appended, Batch, Claimed, Filter, InboxSeq, Lease, Message, NewEntry, OpenInterrupt, Page,
    Phase, ReadRequest, Row, Sent, SessionSummary, StoreError,
};

use super::Store;
use super::hooks::Hooks;
pub(super) use crate::testing::stop::{Broken, Kept, Stop};

/// Longer than any clause takes.
pub(super) const LONG: Duration = Duration::from_secs(600);

/// Expects an error.
macro_rules! refused {
    ($what:expr, $call:expr, $error:pat $(if $guard:expr)?) => {
        match $call {
            Err($error) $(if $guard)? => {}
            other => ensure!(
                false,
                "{}: expected {}, found {other:?}",
                $what,
                stringify!($error $(if $guard)?)
            ),
        }
    };
}

#[derive(Clone)]
pub(super) struct World {
    pub(super) store: Store,
    /// Another handle on the same sessions.
    pub(super) other: Store,
    /// An agent that no other clause has.
    pub(super) agent: AgentId,
    /// Begins every id of the clause.
    pub(super) tag: String,
    /// For leases that are meant to expire.
    pub(super) short: Duration,
    hooks: Arc<Hooks>,
}

/// A store of which the clause has no handle open.
pub(super) struct Closed {
    pub(super) tag: String,
    pub(super) short: Duration,
    pub(super) hooks: Arc<Hooks>,
}

impl Closed {
    /// New handles on the sessions of the clause.
    pub(super) async fn open(self) -> World {
        let Self { tag, short, hooks } = self;
        let (store, other) = ((hooks.open)().await, (hooks.open)().await);
        World { store, other, agent: AgentId::new(tag.clone()), tag, short, hooks }
    }
}

impl World {
    pub(super) async fn new(hooks: Arc<Hooks>, short: Duration) -> Self {
        Closed { tag: SessionId::fresh().to_string(), short, hooks }.open().await
    }

    /// Lets go of its handles.
    pub(super) fn close(self) -> Closed {
        Closed { tag: self.tag, short: self.short, hooks: self.hooks }
    }

    /// What the store's author says how to do.
    pub(super) fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    /// A session id of this clause.
    pub(super) fn id(&self, name: &str) -> Kept<SessionId> {
        Ok(SessionId::new(format!("{}-{name}", self.tag))?)
    }

    pub(super) fn summary(&self, phase: Phase) -> SessionSummary {
        SessionSummary::new(self.agent.clone(), phase, "Step")
    }

    pub(super) async fn claim(&self, id: &SessionId) -> Kept<Claimed> {
        self.claim_for(id, LONG).await
    }

    pub(super) async fn claim_for(&self, id: &SessionId, ttl: Duration) -> Kept<Claimed> {
        Ok(self.store.claim(id, ttl).await?)
    }

    /// A session of this many entries, `1`, `2`, .., each a batch of its own.
    pub(super) async fn session(&self, name: &str, entries: u64) -> Kept<Lease> {
        let lease = self.claim(&self.id(name)?).await?.lease;
        for after in 0..entries {
            self.append(&lease, after, (after + 1).to_string().as_bytes()).await?;
        }
        Ok(lease)
    }

    /// The batch of the clauses that do not care what is in it.
    pub(super) async fn append(
        &self,
        lease: &Lease,
        after: u64,
        bytes: &[u8],
    ) -> Result<Appended, StoreError> {
        let summary = self.summary(Phase::Ended);
        let batch = Batch {
            after: Seq(after),
            at: UtcMillis(1_000 + after),
            entries: &[NewEntry { bytes, snapshot: false }],
            summary: Some(&summary),
            ..Batch::default()
        };
        self.store.append(lease, batch).await
    }

    /// Appends summary and changes of interrupts only.
    pub(super) async fn change(
        &self,
        lease: &Lease,
        after: u64,
        summary: Option<&SessionSummary>,
        open: &[OpenInterrupt],
        close: &[InterruptId],
    ) -> Result<Appended, StoreError> {
        let at = UtcMillis(2_000 + after);
        let batch = Batch { after: Seq(after), at, summary, open, close, ..Batch::default() };
        self.store.append(lease, batch).await
    }

    /// The whole session.
    pub(super) async fn page(&self, id: &SessionId) -> Kept<Page> {
        let page = self
            .store
            .read(id, ReadRequest::from(Seq(1)).with_messages_after(InboxSeq(0)).limit(u64::MAX))
            .await?;
        page.ok_or_else(|| Broken(format!("session {id:?} is not there")))
    }

    pub(super) async fn entries(&self, id: &SessionId) -> Kept<Vec<Vec<u8>>> {
        Ok(self.page(id).await?.entries.into_iter().map(|entry| entry.bytes).collect())
    }

    pub(super) async fn send(&self, to: &SessionId, messages: &[Message]) -> Kept<Sent> {
        Ok(self.store.send(to, messages).await?)
    }

    /// All rows of this clause's agent that `filter` admits, read in pages of `limit`.
    pub(super) async fn rows(&self, filter: Filter, limit: u32) -> Kept<Vec<Row>> {
        let filter = filter.agent(self.agent.clone());
        let (mut rows, mut after) = (Vec::new(), None);
        for _ in 0..10_000 {
            let listing = self.store.list(&filter, after.as_deref(), limit).await?;
            let most = usize::try_from(limit).unwrap_or(usize::MAX);
            ensure!(listing.rows.len() <= most, "more than {limit} rows in one page");
            rows.extend(listing.rows);
            after = listing.next;
            if after.is_none() {
                return Ok(rows);
            }
        }
        Err(Broken("a list has no end".into()))
    }

    /// Lets a lease of `short` expire.
    pub(super) async fn expire(&self) {
        match &self.hooks.advance {
            Some(advance) => advance(self.short * 2).await,
            None => tokio::time::sleep(self.short * 2).await,
        }
    }

    /// Takes a session as soon as its short lease has expired.
    pub(super) async fn steal(&self, id: &SessionId) -> Kept<Claimed> {
        let begun = Instant::now();
        loop {
            match self.store.claim(id, LONG).await {
                Ok(claimed) => return Ok(claimed),
                Err(StoreError::Busy { .. }) if begun.elapsed() < self.short * 100 => {
                    match &self.hooks.advance {
                        Some(advance) => advance(self.short).await,
                        None => tokio::time::sleep(self.short / 20).await,
                    }
                }
                other => {
                    let ttl = self.short;
                    ensure!(false, "a lease of {ttl:?} should expire in the end, found {other:?}");
                }
            }
        }
    }

    /// The most bytes of entries in one batch, if the store has a limit.
    pub(super) fn max_batch(&self) -> Option<u64> {
        self.hooks.max_batch
    }

    /// Releases a lease.
    pub(super) async fn release(&self, lease: &Lease) -> Kept {
        self.store.release(lease, InboxSeq(0)).await?;
        Ok(())
    }

    /// Whether leases expire by real time.
    pub(super) fn real_time(&self) -> bool {
        self.hooks.advance.is_none()
    }
}

pub(super) fn interrupt(id: &str, expires: Option<u64>) -> OpenInterrupt {
    OpenInterrupt { id: id.into(), since: UtcMillis(5), expires: expires.map(UtcMillis) }
}

/// A message whose digest is its text.
pub(super) fn message(key: &str, text: &str) -> Message {
    Message::new(key, text, text)
}

pub(super) fn answer(key: &str, text: &str, interrupt: &str) -> Message {
    Message { interrupt: Some(interrupt.into()), ..message(key, text) }
}
