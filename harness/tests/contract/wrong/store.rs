//! The right store with one thing made wrong.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use harness::store::{
    Appended, Batch, Claim, Claimed, Filter, From, Guarantees, Lease, Letter, Listing, Mail,
    MemoryStore, Page, Posted, Remove, SessionStore, StoreError,
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
}

#[derive(Clone)]
pub(super) struct Wrong {
    bug: Bug,
    right: MemoryStore,
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
        self.right.read(session, From::Snapshot, Mail(0), u64::MAX).await.unwrap()
    }

    async fn head(&self, session: &SessionId) -> Seq {
        self.page(session).await.map_or(Seq(0), |page| page.head)
    }

    async fn free(&self, session: &SessionId) {
        let lease = self.notes.lock().unwrap().leases.get(session).map(|(lease, _)| lease.clone());
        if let Some(lease) = lease {
            let _ = self.right.renew(&lease, Duration::ZERO).await;
        }
    }

    fn note(&self, claimed: &Claimed, ttl: Duration) {
        let (lease, ends) = (claimed.lease.clone(), Instant::now() + ttl);
        self.notes.lock().unwrap().leases.insert(lease.session.clone(), (lease, ends));
    }

    fn expired(&self, lease: &Lease) -> bool {
        let notes = self.notes.lock().unwrap();
        notes.leases.get(&lease.session).is_some_and(|(_, ends)| *ends < Instant::now())
    }
}

#[async_trait]
impl SessionStore for Wrong {
    fn guarantees(&self) -> Guarantees {
        self.right.guarantees()
    }

    async fn claim(&self, what: Claim<'_>, ttl: Duration) -> Result<Option<Claimed>, StoreError> {
        let ttl = if self.is(LeasesNeverExpire) { Duration::from_secs(999) } else { ttl };
        let claimed = match what {
            Claim::One(id) => {
                let id = self.id(id);
                let mut claimed = self.right.claim(Claim::One(&id), ttl).await;
                if claimed.is_err() && self.is(FreesHeldSessions) {
                    self.free(&id).await;
                    claimed = self.right.claim(Claim::One(&id), ttl).await;
                }
                claimed?
            }
            Claim::Due { wait, .. } if self.is(DueNeverComes) => {
                tokio::time::sleep(wait).await;
                None
            }
            Claim::Due { agents, wait } => {
                if self.is(DueTakesHeld) {
                    let ids: Vec<_> = self.notes.lock().unwrap().leases.keys().cloned().collect();
                    for id in ids {
                        self.free(&id).await;
                    }
                }
                let found = self.right.claim(Claim::Due { agents, wait }, ttl).await?;
                let resting =
                    found.as_ref().and_then(|found| found.facts.as_ref()).is_some_and(|facts| {
                        facts.phase != harness::store::Phase::Running && facts.due.is_none()
                    });
                if resting && self.is(DueIgnoresLetters) {
                    self.right.renew(&found.unwrap().lease, Duration::ZERO).await?;
                    None
                } else {
                    found
                }
            }
        };
        if let Some(claimed) = &claimed {
            self.note(claimed, ttl);
        }
        Ok(claimed)
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<Mail, StoreError> {
        if ttl.is_zero() && self.is(ReleaseDoesNothing) {
            return self.right.renew(lease, Duration::from_secs(999)).await;
        }
        if self.is(ExpiryEndsTheLease) && self.expired(lease) {
            return Err(StoreError::Fenced { session: lease.session.clone() });
        }
        match self.right.renew(lease, ttl).await {
            Err(StoreError::Fenced { .. }) if self.is(RenewsAfterTheft) => Ok(Mail(0)),
            Ok(_) if self.is(HidesTheMark) => Ok(Mail(0)),
            renewed => {
                if let Some((_, ends)) = self.notes.lock().unwrap().leases.get_mut(&lease.session) {
                    *ends = Instant::now() + ttl;
                }
                renewed
            }
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
                return Ok(Appended { head, mail: Mail(0) });
            }
            ForgetsQuestions => (batch.ask, batch.close) = (&[], &[]),
            ListsClosedQuestions => batch.close = &[],
            ExpiryEndsTheLease if self.expired(lease) => {
                return Err(StoreError::Fenced { session: session.clone() });
            }
            SplitsBatches => {
                let mut done = Appended { head: batch.after, mail: Mail(0) };
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
                let half = Batch { entries: &batch.entries[..1], facts: None, ..batch };
                self.right.append(lease, half).await?;
                tokio::task::yield_now().await;
                let rest =
                    Batch { after: batch.after.next(), entries: &batch.entries[1..], ..batch };
                return self.right.append(lease, rest).await;
            }
            IgnoresExpiry => {
                let ask: Vec<_> = batch
                    .ask
                    .iter()
                    .map(|asked| harness::store::OpenQuestion { expires: None, ..asked.clone() })
                    .collect();
                return self.right.append(lease, Batch { ask: &ask, ..batch }).await;
            }
            _ => {}
        }
        let found = self.right.append(lease, batch).await;
        let change =
            Batch { after: self.head(session).await, entries: &[], at: UtcMillis(1), ..batch };
        match (self.bug, &found) {
            (AppliesFactsOfARefusedBatch, Err(_)) => {
                let _ = self.right.append(lease, change).await;
            }
            (ResendBringsFactsBack, Ok(_)) if behind => {
                let _ = self.right.append(lease, change).await;
            }
            _ => {}
        }
        found.map(
            |done| if self.is(HidesTheMark) { Appended { mail: Mail(0), ..done } } else { done },
        )
    }

    async fn post(&self, to: &SessionId, letters: &[Letter]) -> Result<Posted, StoreError> {
        let to = &self.id(to);
        match self.bug {
            PostsOneByOne => {
                let mut last = self.right.post(to, &[]).await?;
                for letter in letters {
                    last = self.right.post(to, std::slice::from_ref(letter)).await?;
                    if !matches!(last, Posted::Here(_)) {
                        break;
                    }
                }
                return Ok(last);
            }
            ComparesBodies => {
                let own: Vec<_> = letters
                    .iter()
                    .map(|letter| Letter {
                        digest: String::from_utf8_lossy(&letter.body).into_owned(),
                        ..letter.clone()
                    })
                    .collect();
                return self.right.post(to, &own).await;
            }
            TakesLateAnswers => {
                let own: Vec<_> = letters
                    .iter()
                    .map(|letter| Letter { question: None, ..letter.clone() })
                    .collect();
                return self.right.post(to, &own).await;
            }
            TakesEarlyExpiry => {
                let own: Vec<_> = letters
                    .iter()
                    .map(|letter| match letter.expiry {
                        true => Letter { question: None, ..letter.clone() },
                        false => letter.clone(),
                    })
                    .collect();
                return self.right.post(to, &own).await;
            }
            LosesLettersInARush => {
                let first = !std::mem::replace(&mut self.notes.lock().unwrap().posting, true);
                tokio::task::yield_now().await;
                if first {
                    let posted = self.right.post(to, letters).await;
                    self.notes.lock().unwrap().posting = false;
                    return posted;
                }
                return self.right.post(to, &[]).await;
            }
            _ => {}
        }
        match self.right.post(to, letters).await {
            Ok(Posted::Taken { .. }) if self.is(LastLetterWins) => self.right.post(to, &[]).await,
            Err(StoreError::Gone { .. }) if self.is(PostsToNobody) => Ok(Posted::Here(Mail(1))),
            posted => posted,
        }
    }

    async fn read(
        &self,
        session: &SessionId,
        from: From,
        mail: Mail,
        limit: u64,
    ) -> Result<Option<Page>, StoreError> {
        let session = &self.id(session);
        let limit = if self.is(IgnoresTheLimit) { u64::MAX } else { limit };
        if self.is(HandlesKeepACopy)
            && let Some(page) = self.own.lock().unwrap().seen.get(session)
        {
            return Ok(Some(page.clone()));
        }
        let mut found = self.right.read(session, from, mail, limit).await;
        if self.is(SkipsWhatWasPruned)
            && let Err(StoreError::Pruned { first, .. }) = &found
        {
            found = self.right.read(session, From::Seq(*first), mail, limit).await;
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
                Ok(Listing {
                    rows: all.into_iter().skip(skip).take(limit as usize).collect(),
                    next,
                })
            }
            RepeatsTheLastRow if after.is_some() && limit > 1 => {
                let all = self.right.list(filter, None, u32::MAX).await?.rows;
                let rows: Vec<_> =
                    all.into_iter().filter(|row| Some(row.key().as_slice()) >= after).collect();
                let more = rows.len() > limit as usize;
                let rows: Vec<_> = rows.into_iter().take(limit as usize).collect();
                let next = rows.last().filter(|_| more).map(harness::store::Row::key);
                Ok(Listing { rows, next })
            }
            _ => self.right.list(filter, after, limit).await,
        }
    }

    async fn remove(&self, lease: &Lease, what: Remove) -> Result<(), StoreError> {
        if what == Remove::All && self.is(RemembersNothingOfRemoval) {
            return self.right.renew(lease, Duration::ZERO).await.map(drop);
        }
        self.right.remove(lease, what).await?;
        let mut notes = self.notes.lock().unwrap();
        match what {
            Remove::All => {
                notes.removed.insert(lease.token.as_u128());
            }
            Remove::Below(seq) => {
                let page = Page { first: seq, ..nothing() };
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

/// A page of a session that nobody wrote.
fn nothing() -> Page {
    let facts = serde_json::json!({ "agent": "", "phase": "running", "step": "" });
    Page {
        entries: Vec::new(),
        next: None,
        first: Seq(1),
        head: Seq(0),
        letters: Vec::new(),
        mail: Mail(0),
        facts: serde_json::from_value(facts).unwrap(),
        questions: Vec::new(),
        holder: None,
        created: UtcMillis(0),
        updated: UtcMillis(0),
        set_aside: 0,
    }
}
