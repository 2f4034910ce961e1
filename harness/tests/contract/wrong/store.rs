//! The right store with one thing made wrong.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use harness::id::AgentId;
use harness::store::{
    Appended, Batch, Claimed, DueRequest, DueSessions, Filter, FormerHolder, InboxSeq, Lease,
    Listing, MemoryStore, Message, OpenInterrupt, Page, ReadFrom, ReadRequest, Released, Remove,
    Row, Sent, SessionStore, StoreError,
};
use harness::{Seq, SessionId, UtcMillis};

use super::Bug::{self, *};

/// What the wrong stores remember, beside the right one behind them.
#[derive(Default)]
struct Notes {
    /// The last lease given of each session, and when it ends.
    leases: HashMap<SessionId, (Lease, Instant)>,
    /// Tokens of sessions that were removed.
    removed: HashSet<u128>,
    /// The pages that a handle has seen.
    seen: HashMap<SessionId, Page>,
    posting: bool,
    /// The ids of sessions that were removed.
    gone: HashSet<SessionId>,
}

#[derive(Clone)]
pub(super) struct Wrong {
    pub(super) bug: Bug,
    pub(super) right: MemoryStore,
    notes: Arc<Mutex<Notes>>,
    /// One of each handle.
    own: Arc<Mutex<Notes>>,
}

impl Wrong {
    pub(super) fn new(bug: Bug) -> Self {
        Self { bug, right: MemoryStore::new(), notes: Arc::default(), own: Arc::default() }
    }

    pub(super) fn handle(&self) -> Self {
        Self { own: Arc::default(), ..self.clone() }
    }

    fn is(&self, bug: Bug) -> bool {
        self.bug == bug
    }

    fn id(&self, id: &SessionId) -> SessionId {
        match self.bug {
            IgnoresCaseOfIds => SessionId::new(id.as_str().to_lowercase()).unwrap(),
            ConfusesPrefixesOfIds => {
                let cut = id.as_str().split('\0').next().unwrap();
                SessionId::new(cut).unwrap()
            }
            _ => id.clone(),
        }
    }

    /// The lease that is held instead of this one.
    fn current(&self, lease: &Lease) -> Lease {
        let notes = self.notes.lock().unwrap();
        notes.leases.get(&lease.session).map_or_else(|| lease.clone(), |(lease, _)| lease.clone())
    }

    async fn page(&self, session: &SessionId) -> Option<Page> {
        self.right
            .read(
                session,
                ReadRequest::from_snapshot().with_messages_after(InboxSeq(0)).limit(u64::MAX),
            )
            .await
            .unwrap()
    }

    async fn head(&self, session: &SessionId) -> Seq {
        self.page(session).await.map_or(Seq(0), |page| page.head)
    }

    pub(super) async fn free(&self, session: &SessionId) {
        let lease = self.notes.lock().unwrap().leases.get(session).map(|(lease, _)| lease.clone());
        if let Some(lease) = lease {
            let _ = self.right.release(&lease, InboxSeq(0)).await;
        }
    }

    pub(super) fn note(&self, claimed: &Claimed, ttl: Duration) {
        let (lease, ends) = (claimed.lease.clone(), Instant::now() + ttl);
        self.notes.lock().unwrap().leases.insert(lease.session.clone(), (lease, ends));
    }

    pub(super) fn was_removed(&self, session: &SessionId) -> bool {
        self.notes.lock().unwrap().gone.contains(session)
    }

    fn expired(&self, lease: &Lease) -> bool {
        let notes = self.notes.lock().unwrap();
        notes.leases.get(&lease.session).is_some_and(|(_, ends)| *ends < Instant::now())
    }
}

#[async_trait]
impl SessionStore for Wrong {
    async fn claim(&self, session: &SessionId, ttl: Duration) -> Result<Claimed, StoreError> {
        let ttl = if self.is(LeasesNeverExpire) { Duration::from_secs(999) } else { ttl };
        let id = self.id(session);
        let mut claimed = self.right.claim(&id, ttl).await;
        if claimed.is_err() && self.is(FreesHeldSessions) {
            self.free(&id).await;
            claimed = self.right.claim(&id, ttl).await;
        }
        let mut claimed = claimed?;
        if self.is(ReportsFormerHoldersDead) {
            claimed.former = FormerHolder::Dead;
        }
        self.note(&claimed, ttl);
        Ok(claimed)
    }

    async fn claim_due(
        &self,
        request: &DueRequest,
        ttl: Duration,
    ) -> Result<DueSessions, StoreError> {
        self.due(request, ttl).await
    }

    async fn wait_due(&self, agents: &[AgentId], timeout: Duration) {
        match self.bug {
            WaitsForever => std::future::pending().await,
            _ => self.right.wait_due(agents, timeout).await,
        }
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<InboxSeq, StoreError> {
        if self.is(ExpiryEndsTheLease) && self.expired(lease) {
            return Err(StoreError::Fenced { session: lease.session.clone() });
        }
        match self.right.renew(lease, ttl).await {
            Err(StoreError::Fenced { .. }) if self.is(RenewsAfterTheft) => Ok(InboxSeq(0)),
            Ok(_) if self.is(HidesTheInbox) => Ok(InboxSeq(0)),
            renewed => {
                if let Some((_, ends)) = self.notes.lock().unwrap().leases.get_mut(&lease.session) {
                    *ends = Instant::now() + ttl;
                }
                renewed
            }
        }
    }

    async fn release(&self, lease: &Lease, read: InboxSeq) -> Result<Released, StoreError> {
        match self.bug {
            ReleaseDoesNothing => {
                self.right.renew(lease, Duration::from_secs(999)).await?;
                Ok(Released::Idle)
            }
            ReleaseHidesMessages => self.right.release(lease, read).await.map(|_| Released::Idle),
            ReleaseLooksTooEarly => {
                let before = self.page(&lease.session).await.map_or(InboxSeq(0), |page| page.inbox);
                for _ in 0..3 {
                    tokio::task::yield_now().await;
                }
                self.right.release(lease, read).await?;
                Ok(harness::store::rules::released(read, before))
            }
            _ => self.right.release(lease, read).await,
        }
    }

    async fn append(&self, lease: &Lease, mut batch: Batch<'_>) -> Result<Appended, StoreError> {
        let session = &lease.session;
        let behind = batch.after < self.head(session).await;
        let conflict =
            |head| StoreError::Conflict { session: session.clone(), after: batch.after, head };
        match self.bug {
            AppendsAtTheHead => batch.after = self.head(session).await,
            LetsOldHoldersIn => return self.right.append(&self.current(lease), batch).await,
            LetsOldHoldersOfRemovedSessionsIn
                if self.notes.lock().unwrap().removed.contains(&lease.token.as_u128()) =>
            {
                return self.right.append(&self.current(lease), batch).await;
            }
            ChecksTheLeaseBeforeTheResend => {
                self.right
                    .append(lease, Batch { after: self.head(session).await, ..Batch::default() })
                    .await?;
            }
            RefusesAResend if behind => return Err(conflict(self.head(session).await)),
            TakesAnyBatchForAResend if behind => {
                let head = Seq(batch.after.0 + batch.entries.len() as u64);
                return Ok(Appended::new(head, InboxSeq(0)));
            }
            ForgetsInterrupts => (batch.open, batch.close) = (&[], &[]),
            ListsClosedInterrupts => batch.close = &[],
            ExpiryEndsTheLease if self.expired(lease) => {
                return Err(StoreError::Fenced { session: session.clone() });
            }
            SplitsBatches => {
                let mut done = Appended::new(batch.after, InboxSeq(0));
                for entry in batch.entries {
                    let one =
                        Batch { after: done.head, entries: std::slice::from_ref(entry), ..batch };
                    done = self.right.append(lease, one).await?;
                }
                return if batch.entries.is_empty() {
                    self.right.append(lease, batch).await
                } else {
                    Ok(done)
                };
            }
            CancelsHalfway if batch.entries.len() == 2 && !behind => {
                let half = Batch { entries: &batch.entries[..1], summary: None, ..batch };
                self.right.append(lease, half).await?;
                tokio::task::yield_now().await;
                let rest =
                    Batch { after: batch.after.next(), entries: &batch.entries[1..], ..batch };
                return self.right.append(lease, rest).await;
            }
            IgnoresExpiry => {
                let open: Vec<_> = batch
                    .open
                    .iter()
                    .map(|open| OpenInterrupt { expires: None, ..open.clone() })
                    .collect();
                return self.right.append(lease, Batch { open: &open, ..batch }).await;
            }
            _ => {}
        }
        let found = self.right.append(lease, batch).await;
        let change =
            Batch { after: self.head(session).await, entries: &[], at: UtcMillis(1), ..batch };
        match (self.bug, &found) {
            (AppliesTheSummaryOfARefusedBatch, Err(_)) => {
                let _ = self.right.append(lease, change).await;
            }
            (ResendBringsTheSummaryBack, Ok(_)) if behind => {
                let _ = self.right.append(lease, change).await;
            }
            _ => {}
        }
        found.map(
            |done| {
                if self.is(HidesTheInbox) { Appended::new(done.head, InboxSeq(0)) } else { done }
            },
        )
    }

    async fn send(&self, to: &SessionId, messages: &[Message]) -> Result<Sent, StoreError> {
        let to = &self.id(to);
        match self.bug {
            SendsOneByOne => {
                let mut last = self.right.send(to, &[]).await?;
                for message in messages {
                    last = self.right.send(to, std::slice::from_ref(message)).await?;
                    if !matches!(last, Sent::Accepted(_)) {
                        break;
                    }
                }
                return Ok(last);
            }
            ComparesBodies => {
                let own: Vec<_> = messages
                    .iter()
                    .map(|message| Message {
                        digest: String::from_utf8_lossy(&message.body).into_owned(),
                        ..message.clone()
                    })
                    .collect();
                return self.right.send(to, &own).await;
            }
            TakesLateAnswers => {
                let own: Vec<_> = messages
                    .iter()
                    .map(|message| Message { interrupt: None, ..message.clone() })
                    .collect();
                return self.right.send(to, &own).await;
            }
            TakesEarlyExpiry => {
                let own: Vec<_> = messages
                    .iter()
                    .map(|message| match message.expiry {
                        true => Message { interrupt: None, ..message.clone() },
                        false => message.clone(),
                    })
                    .collect();
                return self.right.send(to, &own).await;
            }
            LosesMessagesInARush => {
                let first = !std::mem::replace(&mut self.notes.lock().unwrap().posting, true);
                tokio::task::yield_now().await;
                if first {
                    let sent = self.right.send(to, messages).await;
                    self.notes.lock().unwrap().posting = false;
                    return sent;
                }
                return self.right.send(to, &[]).await;
            }
            _ => {}
        }
        match self.right.send(to, messages).await {
            Ok(Sent::Taken { .. }) if self.is(LastMessageWins) => self.right.send(to, &[]).await,
            Err(StoreError::Gone { .. }) if self.is(SendsToNoSession) => {
                Ok(Sent::Accepted(InboxSeq(1)))
            }
            sent => sent,
        }
    }

    async fn read(
        &self,
        session: &SessionId,
        mut request: ReadRequest,
    ) -> Result<Option<Page>, StoreError> {
        let session = &self.id(session);
        if self.is(IgnoresTheLimit) {
            request.limit = u64::MAX;
        }
        if self.is(SummariesHaveEntries) {
            request.from = request.from.or(Some(ReadFrom::Snapshot));
        }
        let limit = request.limit;
        if self.is(HandlesKeepACopy)
            && let Some(page) = self.own.lock().unwrap().seen.get(session)
        {
            return Ok(Some(page.clone()));
        }
        let mut found = self.right.read(session, request).await;
        if self.is(SkipsWhatWasPruned)
            && let Err(StoreError::Pruned { first, .. }) = &found
        {
            found = {
                request.from = Some(ReadFrom::Seq(*first));
                self.right.read(session, request).await
            };
        }
        let mut page = found?;
        if let Some(page) = &mut page {
            match self.bug {
                CutsAtZeroBytes => {
                    for entry in &mut page.entries {
                        let end = entry.bytes.iter().position(|byte| *byte == 0);
                        entry.bytes.truncate(end.unwrap_or(entry.bytes.len()));
                    }
                }
                PagesCutBatches if page.entries.len() > 1 && limit < 1_000 => {
                    let cut = page.entries.pop().unwrap();
                    page.next = Some(cut.seq);
                }
                PagesMayBeEmpty => {
                    let size: usize = page.entries.iter().map(|entry| entry.bytes.len()).sum();
                    if size as u64 > limit {
                        page.next = page.entries.first().map(|entry| entry.seq);
                        page.entries.clear();
                    }
                }
                PrunesAboveTheSnapshot => {
                    if let Some(first) = self.own_first(session) {
                        page.first = first.max(page.first).min(page.head);
                        page.entries.retain(|entry| entry.seq >= first);
                    }
                }
                HandlesKeepACopy => {
                    self.own.lock().unwrap().seen.insert(session.clone(), page.clone());
                }
                _ => {}
            }
        }
        if page.is_none() && self.is(SessionsExistOnceClaimed) {
            let claimed = self.notes.lock().unwrap().leases.contains_key(session);
            return Ok(claimed.then(nothing));
        }
        Ok(page)
    }

    async fn list(
        &self,
        filter: &Filter,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Listing, StoreError> {
        match self.bug {
            FiltersByEither if filter.agent.is_some() && filter.phase.is_some() => {
                let mut either = filter.clone();
                either.phase = None;
                self.right.list(&either, after, limit).await
            }
            PagesByCount => {
                let skip = after.map_or(0, |after| {
                    String::from_utf8_lossy(after).parse::<usize>().unwrap_or(0)
                });
                let all = self.right.list(filter, None, u32::MAX).await?.rows;
                let end = skip.saturating_add(limit as usize);
                let next = (end < all.len()).then(|| end.to_string().into_bytes());
                listing(all.into_iter().skip(skip).take(limit as usize).collect(), next)
            }
            RepeatsTheLastRow if after.is_some() && limit > 1 => {
                let all = self.right.list(filter, None, u32::MAX).await?.rows;
                let rows: Vec<_> =
                    all.into_iter().filter(|row| Some(row.key().as_slice()) >= after).collect();
                let more = rows.len() > limit as usize;
                let rows: Vec<_> = rows.into_iter().take(limit as usize).collect();
                let next = rows.last().filter(|_| more).map(Row::key);
                listing(rows, next)
            }
            _ => self.right.list(filter, after, limit).await,
        }
    }

    async fn remove(&self, lease: &Lease, what: Remove) -> Result<(), StoreError> {
        if what == Remove::All && self.is(RemembersNothingOfRemoval) {
            return self.right.release(lease, InboxSeq(0)).await.map(drop);
        }
        self.right.remove(lease, what).await?;
        let mut notes = self.notes.lock().unwrap();
        match what {
            Remove::All => {
                notes.gone.insert(lease.session.clone());
                notes.removed.insert(lease.token.as_u128());
            }
            Remove::Below(seq) => {
                let mut page = nothing();
                page.first = seq;
                notes.seen.insert(lease.session.clone(), page);
            }
        }
        Ok(())
    }
}

impl Wrong {
    /// How far a session was pruned, if nothing had stopped it.
    fn own_first(&self, session: &SessionId) -> Option<Seq> {
        self.notes.lock().unwrap().seen.get(session).map(|page| page.first)
    }
}

fn listing(rows: Vec<Row>, next: Option<Vec<u8>>) -> Result<Listing, StoreError> {
    let mut listing = Listing::new(rows, false);
    listing.next = next;
    Ok(listing)
}

/// A page of a session that was never written.
fn nothing() -> Page {
    let summary = serde_json::json!({ "agent": "", "phase": "running", "step": "" });
    Page::new(serde_json::from_value(summary).unwrap(), Seq(0))
}
