//! Writing: batches by the holder, messages by anybody, and making them durable.

use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use harness::store::{Appended, Lease, Message, Sent, StoreError, rules};
use harness::{Seq, SessionId, UtcMillis};

use super::checkpoint::Checkpoint;
use super::disk::DiskFile;
use super::error::{has_no_descriptor, unsure};
use super::inner::{Inner, Sync};
use super::lease::write_small;
use super::paths::{is_named, set_named};
use super::record::{self, MAX_RECORD, Prepared, Record};
use super::session::{Session, State};

/// How often a write is repeated while the log is being rewritten.
const ATTEMPTS: usize = 20;

impl Inner {
    pub(crate) fn append(&self, lease: &Lease, batch: &Prepared) -> Result<Appended, StoreError> {
        let session = self.session(&lease.session);
        let mut state = session.lock();
        self.usable(&session, &state)?;
        let head = self.put(&session, &mut state, lease, batch)?;
        let inbox = state.index.inbox();
        let upto = state.index.end;
        let settles = batch.flush && batch.settles;
        let checkpoint = if settles { Checkpoint::of(&state.index) } else { None };
        let starts = state.index.start.as_ref().is_some_and(|start| start.offset > state.noted);
        let log = state.file.clone();
        drop(state);
        if batch.flush {
            self.flush(&session, upto)?;
        }
        if starts {
            self.note_start(&session);
        }
        if let (Some(mut checkpoint), Some(log)) = (checkpoint, log) {
            checkpoint.durable = self.sync == Sync::Flush;
            checkpoint.place = Some(self.place.name.clone());
            self.checkpoint(&session, lease, &checkpoint, &*log);
        }
        Ok(Appended::new(Seq(head), inbox))
    }

    /// Puts the batch into the log and returns its last seq.
    fn put(
        &self,
        session: &Session,
        state: &mut State,
        lease: &Lease,
        batch: &Prepared,
    ) -> Result<u64, StoreError> {
        let disk = &*self.disk;
        let mut fresh = state.file.is_none();
        if fresh {
            session.refresh(disk, state)?;
        }
        for _ in 0..ATTEMPTS {
            if state.index.base.is_some_and(|base| batch.outline.after.0 <= base) {
                // It may be there already, before the snapshot that was started from.
                session.read_all(disk, state)?;
            }
            match self.admit(session, state, lease, batch) {
                Ok(rules::Append::New) => {}
                // Messages may have come since it was written, and only the log says whether the
                // lease still holds.
                Ok(rules::Append::Done(head)) if fresh => return Ok(head.0),
                // What was read may be old.
                Ok(_) | Err(_) if !fresh => {
                    session.refresh(disk, state)?;
                    fresh = true;
                    continue;
                }
                Ok(_) => {}
                Err(error) => return Err(error),
            }
            let base = state.index.header.as_ref().map_or(0, |header| header.at);
            let synced = state.synced > 0 && state.synced >= state.index.end;
            let line = batch.line(lease.fence.0, base, synced);
            let own = batch.record(lease.fence.0, base, synced);
            // If nothing has come between, it holds as it was admitted.
            if session.write(disk, state, &line, own)? {
                return Ok(batch.outline.after.0 + batch.outline.entries);
            }
            fresh = true;
        }
        Err(unsure(
            format!(
                "the log of session `{:#}` was rewritten too often during the call (try again)",
                session.id
            ),
            None,
        ))
    }

    /// Whether the batch is appended; or its last seq, if it was.
    fn admit(
        &self,
        session: &Session,
        state: &State,
        lease: &Lease,
        batch: &Prepared,
    ) -> Result<rules::Append, StoreError> {
        let repetition = session.find(state, lease, batch)?;
        let head = state.index.exists().then_some(Seq(state.index.head));
        rules::judge_append(&session.id, batch.outline, head, repetition, || {
            self.check(session, state, lease)
        })
    }

    pub(crate) fn usable(&self, session: &Session, state: &State) -> Result<(), StoreError> {
        if state.failed {
            return Err(unsure(
                format!(
                    "failed to sync the log of session `{:#}` (claim it again to \
                     read it again)",
                    session.id
                ),
                None,
            ));
        }
        Ok(())
    }

    pub(crate) fn send(&self, to: &SessionId, messages: &[Message]) -> Result<Sent, StoreError> {
        let session = self.session(to);
        let mut state = session.lock();
        self.usable(&session, &state)?;
        session.refresh(&*self.disk, &mut state)?;
        for _ in 0..ATTEMPTS {
            if !state.index.exists() {
                return Err(session.gone());
            }
            let now = UtcMillis::now();
            let answer = match state.index.judge(messages, now) {
                Ok(new) if new.is_empty() => Sent::Accepted(state.index.inbox()),
                Ok(_) => {
                    let line = record::messages(now.0, messages.iter(), false);
                    let bytes = line.len() as u64;
                    if bytes > MAX_RECORD {
                        return Err(StoreError::TooLarge { bytes, limit: MAX_RECORD });
                    }
                    let messages = messages.to_vec();
                    let own = Record::Messages { at: now.0, messages, kept: false };
                    session.write(&*self.disk, &mut state, &line, Some(own))?;
                    continue;
                }
                Err(refused) => refused,
            };
            let upto = state.index.end;
            drop(state);
            if matches!(answer, Sent::Accepted(_)) {
                // The process that wrote the messages may not have flushed them.
                self.flush(&session, upto)?;
                self.count_change(&session.paths);
                self.notify_if_due(&session, &session.lock());
            }
            return Ok(answer);
        }
        Err(unsure(
            format!(
                "the log of session `{:#}` was rewritten too often during the call (try again)",
                session.id
            ),
            None,
        ))
    }

    /// Makes the log durable up to a place.
    pub(crate) fn flush(&self, session: &Session, upto: u64) -> Result<(), StoreError> {
        if self.sync == Sync::Never {
            return Ok(());
        }
        let _gate = session.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = session.lock();
        self.usable(session, &state)?;
        if state.file.is_none() {
            session.refresh(&*self.disk, &mut state)?;
        }
        if state.named && state.synced >= upto {
            return Ok(());
        }
        let Some(file) = state.file.clone() else { return Err(session.gone()) };
        let (named, end) = (state.named, state.index.end);
        drop(state);
        // The name of a file that another process has made may not be durable either.
        let names = if named { Ok(()) } else { self.sync_names(&session.paths.shard) };
        let done = names.and_then(|()| file.sync());
        let mut state = session.lock();
        let same = state.file.as_ref().is_some_and(|now| Arc::ptr_eq(now, &file));
        match done {
            Ok(()) => {
                if same {
                    state.named = true;
                    state.synced = state.synced.max(end);
                }
                Ok(())
            }
            Err(error) => {
                // The system reports a failed sync only once: the next sync would report success
                // although the data is lost.
                state.failed = true;
                Err(unsure(
                    format!("failed to sync `{}`", session.paths.log.display()),
                    Some(error),
                ))
            }
        }
    }

    /// Makes the names in a part of the directory durable, and its own, unless that was done before.
    fn sync_names(&self, shard: &Path) -> io::Result<()> {
        let named = is_named(&*self.disk, shard);
        if !named {
            self.disk.sync_dir(&self.sessions)?;
        }
        self.disk.sync_dir(shard)?;
        if !named {
            // Last: what is made between two syncs makes the second write more.
            set_named(&*self.disk, shard);
        }
        Ok(())
    }

    /// Writes the checkpoint of a session that has settled. The log is durable up to there.
    ///
    /// The log is locked meanwhile, as it is by a process that removes it: a checkpoint without its
    /// log would be taken for damage.
    pub(crate) fn checkpoint(
        &self,
        session: &Session,
        lease: &Lease,
        checkpoint: &Checkpoint,
        log: &dyn DiskFile,
    ) {
        let mut state = session.lock();
        if !log.try_lock().unwrap_or(false) {
            return;
        }
        // The sync may have taken longer than the lease: then the new holder writes the next one.
        let unchanged =
            log.stat().is_ok_and(|found| found.links > 0 && found.len == checkpoint.mark.offset);
        let held = unchanged
            || session.refresh(&*self.disk, &mut state).is_ok()
                && session.holds(&state, lease).is_ok();
        if held && log.stat().is_ok_and(|found| found.links > 0) {
            let write = || write_small(&*self.disk, &session.paths.checkpoint, checkpoint);
            let again = |error: io::Error| match has_no_descriptor(&error) && self.close_idle() {
                true => write(),
                false => Err(error),
            };
            // Without a sync: what was acknowledged is in the log, which is synced. If this fails, or
            // does not reach the disk before a loss of power, the log says what the checkpoint would.
            let _ = write().or_else(again);
        }
        log.unlock();
    }

    /// Records where the next reader can start, if that has changed.
    pub(crate) fn note_start(&self, session: &Session) {
        let mut state = session.lock();
        let Some(start) = &state.index.start else { return };
        let durable = state.named && state.synced >= start.offset + start.len;
        if state.noted >= start.offset || (self.sync == Sync::Flush && !durable) {
            return;
        }
        let mut start = start.clone();
        state.noted = start.offset;
        drop(state);
        start.boot = match self.sync {
            Sync::Flush => None,
            Sync::Never => match super::start::boot_id() {
                None => return,
                boot => boot,
            },
        };
        start.named |= self.sync == Sync::Flush;
        // Without it, the log is read from its beginning.
        let _ = write_small(&*self.disk, &session.paths.start, &start);
    }
}
