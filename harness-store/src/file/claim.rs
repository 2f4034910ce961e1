//! Leases: claiming, holding and releasing them.

use std::sync::Arc;
use std::time::Duration;

use harness::store::{
    Claimed, FormerHolder, Holder, InboxSeq, Lease, Released, StoreError, Token, rules,
};
use harness::{Seq, SessionId, UtcMillis, id::Fence};

use super::disk::{DiskFile, Mode};
use super::error::failed;
use super::index::Index;
use super::inner::Inner;
use super::lease::{Renewal, boot_millis, deadline, on_the_wall, read_small, write_small};
use super::record::{self, ClaimRecord, Header, Record};
use super::session::{Session, State};

/// How often it is tried to begin a session that another process is beginning or removing.
const TRIES: u32 = 50;

impl Inner {
    pub(crate) fn claim(&self, id: &SessionId, ttl: Duration) -> Result<Claimed, StoreError> {
        let claimed = self.claim_if(id, ttl, |_| true)?;
        claimed.ok_or_else(|| StoreError::Gone { session: id.clone() })
    }

    /// Claims a session, unless its log says that the caller does not want it.
    pub(crate) fn claim_if(
        &self,
        id: &SessionId,
        ttl: Duration,
        wanted: impl FnOnce(&Index) -> bool,
    ) -> Result<Option<Claimed>, StoreError> {
        let session = self.session(id);
        let mut state = session.lock();
        let state = &mut *state;
        if state.failed {
            // What the page cache holds of what could not be written is not what is on the disk.
            if let Some(file) = &state.file {
                file.drop_cache();
            }
            state.forget();
        }
        session.refresh(&*self.disk, state)?;
        if state.index.removed {
            self.finish_removal(&session, state)?;
        }
        if !wanted(&state.index) {
            return Ok(None);
        }
        let left_over = self.left_over(&session, state)?;
        let token = Token::random();
        let mut claim =
            ClaimRecord { fence: 1, token, owner: self.liveness.id, until: deadline(ttl) };
        let mut former = FormerHolder::Unknown;
        for _ in 0..TRIES {
            let held = self.held_until(&session, state)?;
            former = self.former(&session, state)?;
            match held.filter(|_| state.index.begun()) {
                Some(until) => {
                    return Err(StoreError::Busy {
                        session: id.clone(),
                        until: on_the_wall(until),
                    });
                }
                None if state.index.begun() => self.append_claim(&session, state, &mut claim)?,
                None => self.begin(&session, state, &claim)?,
            }
            if state.index.claim.as_ref().is_some_and(|last| last.token == token) {
                break;
            }
            // Another claim was first. It may be that of a dead process, whose record lacked its
            // end until this one came behind it.
        }
        if state.index.claim.as_ref().is_none_or(|last| last.token != token) {
            return Err(StoreError::Busy { session: id.clone(), until: UtcMillis::now() });
        }
        state.until = Some(claim.until);
        self.count_change(&session.paths);
        for path in left_over {
            // If this fails, the next claim tries again.
            let _ = self.disk.unlink(&path);
        }
        let index = &state.index;
        let mut claimed = Claimed::new(Lease::new(id.clone(), Fence(claim.fence), token));
        claimed.head = Seq(index.head);
        claimed.inbox = index.inbox();
        claimed.summary.clone_from(&index.summary);
        claimed.former = former;
        Ok(Some(claimed))
    }

    /// What is known of the holder of the last claim, once its lease is free.
    fn former(&self, session: &Session, state: &State) -> Result<FormerHolder, StoreError> {
        Ok(match &state.index.claim {
            None => FormerHolder::Released,
            Some(claim) if claim.owner == 0 => FormerHolder::Released,
            Some(_) if self.is_released(session, state)? => FormerHolder::Released,
            Some(claim) if !self.liveness.is_open(claim.owner) => FormerHolder::Dead,
            Some(_) => FormerHolder::Expired,
        })
    }

    fn append_claim(
        &self,
        session: &Session,
        state: &mut State,
        claim: &mut ClaimRecord,
    ) -> Result<(), StoreError> {
        claim.fence = state.index.fence() + 1;
        let torn = state.index.torn;
        let epoch = state.index.epoch().0.to_owned();
        session.write(
            &*self.disk,
            state,
            &record::claim(claim),
            Some(Record::Claim(claim.clone())),
        )?;
        let set_aside = state.index.torn.saturating_sub(torn);
        if state.index.epoch().0 == epoch && set_aside > 0 {
            tracing::warn!(
                session = %session.id,
                bytes = set_aside,
                "the end of a log was never written whole, and is set aside"
            );
        }
        Ok(())
    }

    /// Begins the log of a session that does not exist, with this claim.
    ///
    /// Here alone a lock is held while something is written: it keeps a file from being taken away
    /// in which a session is just beginning. No write to an existing session waits for it.
    fn begin(
        &self,
        session: &Session,
        state: &mut State,
        claim: &ClaimRecord,
    ) -> Result<(), StoreError> {
        for attempt in 0..TRIES {
            let file = self.make_log(session)?;
            if !file.try_lock().map_err(|error| session.failed("lock", error))? {
                std::thread::sleep(Duration::from_millis(u64::from(attempt.min(10))));
                continue;
            }
            let found = file.stat().map_err(|error| session.failed("look at", error))?;
            if found.links == 0 {
                continue;
            }
            state.forget();
            if found.len > 0 {
                session.refresh(&*self.disk, state)?;
                if state.index.begun() {
                    // Another process was faster; the caller sees whose claim it is.
                    file.unlock();
                    return Ok(());
                }
                self.clear(session)?;
            }
            let header = Header {
                id: session.id.clone(),
                epoch: Token::random().to_string(),
                rewritten: 0,
                at: UtcMillis::now().0,
            };
            let mut lines = record::header(&header);
            lines.extend(record::claim(claim));
            state.file = Some(file.clone());
            let written = session.write(&*self.disk, state, &lines, None);
            file.unlock();
            return written.map(drop);
        }
        Err(StoreError::Unavailable {
            what: format!(
                "session `{:#}` is being created or removed by another process (try again)",
                session.id
            ),
            ambiguous: false,
            source: None,
        })
    }

    /// Opens the log of a session that does not exist, which another process may have created.
    fn make_log(&self, session: &Session) -> Result<Arc<dyn DiskFile>, StoreError> {
        let open = || self.disk.open(&session.paths.log, Mode::AppendOrCreate);
        let made = match open() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                match self.disk.make_dir(&session.paths.shard) {
                    Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                        return Err(failed("make", &session.paths.shard, error));
                    }
                    _ => open(),
                }
            }
            made => made,
        };
        made.map_err(|error| session.failed("make", error))
    }

    /// Takes away what is left of the session that was in this file before.
    fn clear(&self, session: &Session) -> Result<(), StoreError> {
        for path in [&session.paths.checkpoint, &session.paths.lease, &session.paths.start] {
            match self.disk.unlink(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(failed("remove", path, error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// When the lease of the last claim expires, by the clock of leases; `None` if the lease is free.
    pub(crate) fn held_until(
        &self,
        session: &Session,
        state: &State,
    ) -> Result<Option<u64>, StoreError> {
        let Some(claim) = &state.index.claim else { return Ok(None) };
        if claim.owner == 0 {
            return Ok(None);
        }
        if claim.owner == self.liveness.id {
            match state.until {
                Some(0) => return Ok(None),
                Some(until) if until > boot_millis() => return Ok(Some(until)),
                // Another handle may have renewed it for longer.
                _ => {}
            }
        }
        let until = match self.renewal(session, state)? {
            Some(renewal) => renewal.until,
            None => Some(claim.until),
        };
        Ok(until.filter(|until| *until > boot_millis() && self.liveness.is_open(claim.owner)))
    }

    /// What is written beside the log about its last claim.
    fn renewal(&self, session: &Session, state: &State) -> Result<Option<Renewal>, StoreError> {
        let renewal: Option<Renewal> = read_small(&*self.disk, &session.paths.lease)
            .map_err(|error| failed("read", &session.paths.lease, error))?;
        Ok(renewal.filter(|renewal| {
            renewal.epoch == state.index.epoch().0 && renewal.fence == state.index.fence()
        }))
    }

    /// Whether the lease is that of the last claim, and was not released.
    pub(crate) fn check(
        &self,
        session: &Session,
        state: &State,
        lease: &Lease,
    ) -> Result<(), StoreError> {
        let held = session.holds(state, lease);
        if held.is_ok() && !self.is_released(session, state)? {
            return Ok(());
        }
        // A session that was never written and is not held does not exist.
        if !state.index.exists() && self.held_until(session, state)?.is_none() {
            return Err(session.gone());
        }
        held.and(Err(session.fenced()))
    }

    /// Whether the lease of the last claim was released. The first stores released their own leases
    /// in the file beside the log.
    pub(crate) fn is_released(&self, session: &Session, state: &State) -> Result<bool, StoreError> {
        match &state.index.claim {
            Some(claim) if claim.owner == 0 => Ok(true),
            Some(claim) if claim.owner == self.liveness.id => Ok(false),
            _ => Ok(self.renewal(session, state)?.is_some_and(|renewal| renewal.until.is_none())),
        }
    }

    pub(crate) fn renew(&self, lease: &Lease, ttl: Duration) -> Result<InboxSeq, StoreError> {
        let session = self.session(&lease.session);
        let mut state = session.lock();
        session.refresh(&*self.disk, &mut state)?;
        self.check(&session, &state, lease)?;
        let until = Some(deadline(ttl));
        let epoch = state.index.epoch().0.to_owned();
        let renewal = Renewal { epoch, fence: lease.fence.0, until };
        write_small(&*self.disk, &session.paths.lease, &renewal)
            .map_err(|error| failed("write", &session.paths.lease, error))?;
        state.until = until;
        Ok(state.index.inbox())
    }

    pub(crate) fn release(&self, lease: &Lease, read: InboxSeq) -> Result<Released, StoreError> {
        let session = self.session(&lease.session);
        let mut state = session.lock();
        session.refresh(&*self.disk, &mut state)?;
        self.check(&session, &state, lease)?;
        for _ in 0..TRIES {
            // A claim record without an owner says to all stores that the lease is free.
            let fence = lease.fence.0 + 1;
            let claim = ClaimRecord { fence, token: Token::random(), owner: 0, until: read.0 };
            let line = record::claim(&claim);
            let own = Some(Record::Claim(claim));
            if let Err(error) = session.write(&*self.disk, &mut state, &line, own) {
                // This store knows it nevertheless; for others the lease expires.
                state.until = Some(0);
                return Err(error);
            }
            // Unless the log was rewritten just before it.
            if session.holds(&state, lease).is_err() {
                break;
            }
        }
        if state.unswept {
            self.sweep(&session);
            state.unswept = false;
        }
        // A message that came before its sender could find the lease free is read here.
        session.refresh(&*self.disk, &mut state)?;
        self.notify_if_due(&session, &state);
        Ok(rules::released(read, state.index.inbox()))
    }

    pub(crate) fn holder(
        &self,
        session: &Session,
        state: &State,
    ) -> Result<Option<Holder>, StoreError> {
        let until = self.held_until(session, state)?;
        Ok(until.map(|until| Holder::new(Fence(state.index.fence()), on_the_wall(until))))
    }
}
