//! Leases: claiming, holding and releasing them.

use std::sync::Arc;
use std::time::Duration;

use harness::store::{Claimed, Holder, InboxSeq, Lease, Released, StoreError, Token, rules};
use harness::{Seq, SessionId, UtcMillis, id::Fence};

use super::disk::{DiskFile, Mode};
use super::error::failed;
use super::lease::{Renewal, boot_millis, deadline, on_the_wall, read_small, write_small};
use super::record::{self, Header, Record, Seal};
use super::rest;
use super::session::{Session, State};
use super::store::Inner;
use super::tag::Tag;

/// How often it is tried to begin a session that another process is beginning or removing.
const TRIES: u32 = 50;

impl Inner {
    pub(crate) fn claim(&self, id: &SessionId, ttl: Duration) -> Result<Claimed, StoreError> {
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
        state.just_read = None;
        if state.index.removed {
            self.finish_removal(&session, state)?;
        }
        let left_over = self.left_over(&session, state)?;
        let token = Token::random();
        let mut seal = Seal { fence: 1, token, owner: self.owner.id, until: deadline(ttl) };
        for _ in 0..TRIES {
            let held = self.held_until(&session, state)?;
            match held.filter(|_| state.index.begun()) {
                Some(until) => {
                    return Err(StoreError::Busy {
                        session: id.clone(),
                        until: on_the_wall(until),
                    });
                }
                None if state.index.begun() => self.seal(&session, state, &mut seal)?,
                None => self.begin(&session, state, &seal)?,
            }
            if state.index.seal.as_ref().is_some_and(|last| last.token == token) {
                break;
            }
            // Another claim was first. It may be that of a dead process, whose record lacked its
            // end until this one came behind it.
        }
        if state.index.seal.as_ref().is_none_or(|last| last.token != token) {
            return Err(StoreError::Busy { session: id.clone(), until: UtcMillis::now() });
        }
        (state.released, state.renewed) = (Some(0), None);
        self.holding.takes(id);
        for path in left_over {
            // Should it fail, whoever takes the session over next tries again.
            let _ = self.disk.unlink(&path);
        }
        let index = &state.index;
        let mut claimed = Claimed::new(Lease::new(id.clone(), Fence(seal.fence), token));
        claimed.head = Seq(index.head);
        claimed.inbox = index.inbox();
        claimed.summary.clone_from(&index.summary);
        Ok(claimed)
    }

    fn seal(
        &self,
        session: &Session,
        state: &mut State,
        seal: &mut Seal,
    ) -> Result<(), StoreError> {
        seal.fence = state.index.fence() + 1;
        let torn = state.index.torn;
        let life = state.index.life().0.to_owned();
        session.write(&*self.disk, state, &record::seal(seal), Some(Record::Seal(seal.clone())))?;
        let set_aside = state.index.torn.saturating_sub(torn);
        if state.index.life().0 == life && set_aside > 0 {
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
    /// in which a session is just beginning. Nobody who writes to a session waits for it.
    fn begin(&self, session: &Session, state: &mut State, seal: &Seal) -> Result<(), StoreError> {
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
                    // Somebody else was faster; the caller sees whose claim it is.
                    file.unlock();
                    return Ok(());
                }
                self.clear(session, &*file)?;
            }
            let header = Header {
                id: session.id.clone(),
                life: Token::random().to_string(),
                rewritten: 0,
                at: UtcMillis::now().0,
            };
            let mut lines = record::header(&header);
            lines.extend(record::seal(seal));
            state.file = Some(file.clone());
            let written = session.write(&*self.disk, state, &lines, None);
            file.unlock();
            return written.map(drop);
        }
        Err(StoreError::Unavailable {
            what: format!(
                "session `{}` is just being made or removed by another process (try again)",
                session.id
            ),
            ambiguous: false,
            source: None,
        })
    }

    /// Opens the log of a session that does not exist, which somebody else may have made.
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
    fn clear(&self, session: &Session, log: &dyn DiskFile) -> Result<(), StoreError> {
        log.drop_tag();
        for path in [&session.paths.rest, &session.paths.lease, &session.paths.start] {
            match self.disk.unlink(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(failed("remove", path, error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// When the lease of the last claim expires, in the time of leases; `None` if nobody holds it.
    pub(crate) fn held_until(
        &self,
        session: &Session,
        state: &State,
    ) -> Result<Option<u64>, StoreError> {
        let Some(seal) = &state.index.seal else { return Ok(None) };
        if state.released == Some(seal.fence) {
            return Ok(None);
        }
        // Whoever claimed here knows of a release. Another handle may have renewed it for longer.
        let ours = seal.owner == self.owner.id && state.released.is_some();
        let until = state.renewed.unwrap_or(seal.until);
        if ours && until > boot_millis() {
            return Ok(Some(until));
        }
        let until = match self.renewal(session, state)? {
            Some(renewal) => renewal.until,
            None => Some(seal.until),
        };
        Ok(until.filter(|until| *until > boot_millis() && self.owner.lives(seal.owner)))
    }

    /// What is written beside the log about its last claim.
    fn renewal(&self, session: &Session, state: &State) -> Result<Option<Renewal>, StoreError> {
        let Some(seal) = &state.index.seal else { return Ok(None) };
        let released = || {
            let life = state.index.life().0.to_owned();
            Renewal { life, fence: seal.fence, until: None }
        };
        // Who holds it knows whether it was released.
        if seal.owner != self.owner.id || state.released.is_none() {
            let tag = state.file.as_deref().and_then(Tag::on);
            let token = tag.filter(|tag| tag.mark.life == state.index.life().0);
            if token.and_then(|tag| tag.released) == Some(seal.token) {
                return Ok(Some(released()));
            }
            let note: Option<rest::Released> = read_small(&*self.disk, &session.paths.rest)
                .map_err(|error| failed("read", &session.paths.rest, error))?;
            let token = note.and_then(|note| note.released);
            if token.is_some_and(|token| token == seal.token.to_string()) {
                return Ok(Some(released()));
            }
        }
        let renewal: Option<Renewal> = read_small(&*self.disk, &session.paths.lease)
            .map_err(|error| failed("read", &session.paths.lease, error))?;
        Ok(renewal.filter(|renewal| {
            renewal.life == state.index.life().0 && renewal.fence == state.index.fence()
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
        self.holding.leaves(&lease.session);
        // A session that was never written and that nobody holds is none.
        if !state.index.exists() && self.held_until(session, state)?.is_none() {
            return Err(session.gone());
        }
        held.and(Err(session.fenced()))
    }

    /// Whether the lease of the last claim was released.
    pub(crate) fn is_released(&self, session: &Session, state: &State) -> Result<bool, StoreError> {
        match &state.index.seal {
            Some(seal) if state.released == Some(seal.fence) => Ok(true),
            // Only the store that claimed releases in the file beside the log.
            Some(seal) if seal.owner == self.owner.id && state.released.is_some() => Ok(false),
            _ => Ok(self.renewal(session, state)?.is_some_and(|renewal| renewal.until.is_none())),
        }
    }

    pub(crate) fn renew(&self, lease: &Lease, ttl: Duration) -> Result<InboxSeq, StoreError> {
        let session = self.session(&lease.session);
        let mut state = session.lock();
        session.refresh(&*self.disk, &mut state)?;
        self.check(&session, &state, lease)?;
        let until = Some(deadline(ttl));
        let life = state.index.life().0.to_owned();
        let renewal = Renewal { life, fence: lease.fence.0, until };
        write_small(&*self.disk, &session.paths.lease, &renewal)
            .map_err(|error| failed("write", &session.paths.lease, error))?;
        state.renewed = until;
        Ok(state.index.inbox())
    }

    pub(crate) fn release(&self, lease: &Lease, read: InboxSeq) -> Result<Released, StoreError> {
        let session = self.session(&lease.session);
        let mut state = session.lock();
        session.refresh(&*self.disk, &mut state)?;
        self.check(&session, &state, lease)?;
        let ours = state.index.seal.as_ref().is_some_and(|seal| seal.owner == self.owner.id);
        if ours {
            self.note_release(&session, &mut state, lease)?;
        } else {
            // Whoever claimed must learn of it: a claim by nobody says so to all.
            let seal =
                Seal { fence: lease.fence.0 + 1, token: Token::random(), owner: 0, until: 0 };
            session.write(&*self.disk, &mut state, &record::seal(&seal), None)?;
        }
        // A message that came before its sender could find the lease free is read here.
        session.refresh(&*self.disk, &mut state)?;
        Ok(rules::released(read, state.index.inbox()))
    }

    fn note_release(
        &self,
        session: &Session,
        state: &mut State,
        lease: &Lease,
    ) -> Result<(), StoreError> {
        // Here it is known even if the disk takes no word of it; elsewhere it expires then.
        state.released = Some(lease.fence.0);
        self.holding.leaves(&lease.session);
        let noted = state.noted_rest.take();
        if !noted.is_some_and(|noted| noted.release(lease.token, state.index.life())) {
            let life = state.index.life().0.to_owned();
            let renewal = Renewal { life, fence: lease.fence.0, until: None };
            write_small(&*self.disk, &session.paths.lease, &renewal)
                .map_err(|error| failed("write", &session.paths.lease, error))?;
            state.renewed = None;
        }
        Ok(())
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
