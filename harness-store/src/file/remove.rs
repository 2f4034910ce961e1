//! Removing sessions, and the beginnings of their logs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use harness::store::{Batch, Lease, NewEntry, Remove, StoreError, Token};
use harness::{Seq, UtcMillis};

use super::disk::Mode;
use super::error::{failed, unsure};
use super::index::BatchRef;
use super::inner::{Inner, Sync};
use super::paths::Paths;
use super::record::{self, ClaimRecord, Header, Origin, Prepared, Record};
use super::session::{Session, State};

/// How many milliseconds to wait for the lock of a log that is being removed.
const PATIENCE: u32 = 100;

impl Inner {
    pub(crate) fn remove(&self, lease: &Lease, what: Remove) -> Result<(), StoreError> {
        let session = self.session(&lease.session);
        let mut state = session.lock();
        self.usable(&session, &state)?;
        session.refresh(&*self.disk, &mut state)?;
        self.check(&session, &state, lease)?;
        match what {
            Remove::All => self.remove_all(&session, &mut state, lease),
            Remove::Below(seq) => self.remove_below(&session, &mut state, lease, seq),
        }
    }

    /// Says in the log that the session is gone, which decides it, and then takes the files away.
    fn remove_all(
        &self,
        session: &Session,
        state: &mut State,
        lease: &Lease,
    ) -> Result<(), StoreError> {
        let Some(file) = state.file.clone() else { return Err(session.gone()) };
        // A process that begins the session again in this file, or writes its checkpoint, has it locked.
        let mut locked = file.try_lock().map_err(|error| session.failed("lock", error))?;
        for _ in 0..PATIENCE {
            if locked {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
            locked = file.try_lock().map_err(|error| session.failed("lock", error))?;
        }
        let removed = (|| {
            session.write(&*self.disk, state, &record::removed(lease.fence.0), None)?;
            if !state.index.removed {
                session.holds(state, lease)?;
            }
            if self.sync == Sync::Flush {
                file.sync().map_err(|error| {
                    state.failed = true;
                    unsure(format!("failed to sync `{}`", session.paths.log.display()), Some(error))
                })?;
            }
            if locked { self.unlink_all(&session.paths) } else { Ok(()) }
        })();
        if locked {
            file.unlock();
        }
        if removed.is_ok() {
            state.forget();
        }
        removed
    }

    fn unlink_all(&self, paths: &Paths) -> Result<(), StoreError> {
        let gone = |path: &Path, done: io::Result<()>| match done {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("remove", path, error))
            }
            _ => Ok(()),
        };
        gone(&paths.checkpoint, self.disk.unlink(&paths.checkpoint))?;
        gone(&paths.lease, self.disk.unlink(&paths.lease))?;
        gone(&paths.start, self.disk.unlink(&paths.start))?;
        for copy in copies(paths) {
            gone(&copy, self.disk.unlink(&copy))?;
        }
        // A note without its log would be taken for damage.
        if self.sync == Sync::Flush {
            gone(&paths.shard, self.disk.sync_dir(&paths.shard))?;
        }
        gone(&paths.log, self.disk.unlink(&paths.log))?;
        if self.sync == Sync::Flush {
            gone(&paths.shard, self.disk.sync_dir(&paths.shard))?;
        }
        Ok(())
    }

    /// Deletes the files of a session whose removal was interrupted, unless another process has the log
    /// locked, which deletes them or begins the session again.
    pub(crate) fn finish_removal(
        &self,
        session: &Session,
        state: &mut State,
    ) -> Result<(), StoreError> {
        let Some(file) = state.file.clone() else { return Ok(()) };
        if !file.try_lock().map_err(|error| session.failed("lock", error))? {
            return Ok(());
        }
        // A session begins in this file only while it is locked.
        let done = session.refresh(&*self.disk, state).and_then(|()| {
            let same = state.file.as_ref().is_some_and(|now| Arc::ptr_eq(now, &file));
            if !same || !state.index.removed || state.read_only {
                return Ok(());
            }
            self.unlink_all(&session.paths)?;
            state.forget();
            Ok(())
        });
        file.unlock();
        done
    }

    /// Copies of the log whose writer was interrupted before it continued the log there, or deleted
    /// them. Such a writer has not released its lease either.
    ///
    /// A copy that is there before a claim never becomes the log after it: the record that says so
    /// holds only if nothing has come since the copy was made.
    pub(crate) fn left_over(
        &self,
        session: &Session,
        state: &State,
    ) -> Result<Vec<PathBuf>, StoreError> {
        if state.index.claim.is_none() || self.is_released(session, state)? {
            return Ok(Vec::new());
        }
        Ok(copies(&session.paths))
    }

    /// Deletes copies of the log in which it can no longer continue.
    pub(crate) fn sweep(&self, session: &Session) {
        for path in copies(&session.paths) {
            // If this fails, it stays until the session is removed.
            let _ = self.disk.unlink(&path);
        }
    }

    /// Copies what is kept into a new file and records in the log that it continues there. The record
    /// is void if anything was written since the copy was made; then another copy is made.
    fn remove_below(
        &self,
        session: &Session,
        state: &mut State,
        lease: &Lease,
        seq: Seq,
    ) -> Result<(), StoreError> {
        for _ in 0..100 {
            session.read_all(&*self.disk, state)?;
            let cut = match state.index.snapshots.last() {
                Some(last) => seq.0.min(*last),
                None => return Ok(()),
            };
            if cut <= state.index.first {
                return Ok(());
            }
            let Some(copy) = self.copy(session, state, cut)? else { return Ok(()) };
            let stem = session.paths.log.file_stem().unwrap_or_default().to_string_lossy();
            let name = format!("{stem}.{}.{}.next", self.place.name, Token::random());
            let path = session.paths.shard.join(&name);
            let made = self.write_new(&path, &copy);
            if let Err(error) = made {
                let _ = self.disk.unlink(&path);
                return Err(failed("write", &path, error));
            }
            let epoch = state.index.epoch().1;
            let line = record::moved(lease.fence.0, state.len, &name);
            let (file, offset) = (state.file.clone(), state.len);
            let written = session.write(&*self.disk, state, &line, None);
            if let Err(error) = written.and_then(|_| session.refresh(&*self.disk, state)) {
                // A record that lacks more than its last byte never holds.
                let end = offset + line.len() as u64 - 1;
                let void = file.is_some_and(|log| log.stat().is_ok_and(|found| found.len < end));
                state.unswept = !void || self.disk.unlink(&path).is_err();
                return Err(error);
            }
            if state.index.epoch().1 == epoch + 1 {
                if self.sync == Sync::Flush {
                    self.disk
                        .sync_dir(&session.paths.shard)
                        .map_err(|error| failed("sync", &session.paths.shard, error))?;
                }
                if self.sync == Sync::Flush {
                    state.synced = state.synced.max(copy.len() as u64);
                }
                return Ok(());
            }
            let _ = self.disk.unlink(&path);
            session.holds(state, lease)?;
        }
        Err(StoreError::Unavailable {
            what: format!(
                "session `{:#}` was written to during each of 100 tries to prune it (try again)",
                session.id
            ),
            ambiguous: false,
            source: None,
        })
    }

    fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let file = self.disk.open(path, Mode::AppendNew)?;
        file.write_all(bytes)?;
        if self.sync == Sync::Flush {
            file.sync()?;
            // Its name must be durable before the log refers to it.
            if let Some(shard) = path.parent() {
                self.disk.sync_dir(shard)?;
            }
        }
        Ok(())
    }

    /// A batch without its entries below a seq.
    fn later_part(
        &self,
        session: &Session,
        state: &State,
        batch: &BatchRef,
        cut: u64,
        base: u64,
    ) -> Result<Vec<u8>, StoreError> {
        let entries = self.batch(session, state, batch)?;
        let bytes = self.bytes(session, state, batch)?;
        let Some(Record::Batch(found)) = record::parse(record::inner(&bytes)) else {
            return Ok(bytes);
        };
        let kept: Vec<NewEntry<'_>> = (batch.after + 1..)
            .zip(&entries)
            .filter(|(seq, _)| *seq >= cut)
            .map(|(_, (bytes, snapshot))| NewEntry { bytes, snapshot: *snapshot })
            .collect();
        let meta = found.meta.unwrap_or_default().into_owned();
        let part = Prepared::new(&Batch {
            after: Seq(cut - 1),
            at: UtcMillis(base.saturating_add_signed(found.at)),
            entries: &kept,
            summary: meta.summary.as_ref(),
            open: &meta.open,
            close: &meta.close,
            flush: false,
        })?;
        Ok(part.line(batch.fence, base, found.synced))
    }

    /// The log without its entries below a seq. `None` if there is
    /// nothing to leave out.
    fn copy(
        &self,
        session: &Session,
        state: &State,
        cut: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let index = &state.index;
        let (Some(header), Some(claim)) = (&index.header, &index.claim) else { return Ok(None) };
        let (Some(summary), Some(created)) = (&index.summary, index.created) else {
            return Ok(None);
        };
        let begin =
            index.batches.partition_point(|batch| batch.after + u64::from(batch.count) < cut);
        if begin == index.batches.len() {
            return Ok(None);
        }
        let header = Header { rewritten: header.rewritten + 1, ..header.clone() };
        let mut copy = record::header(&header);
        let messages = index.messages.iter().map(|stored| &stored.message);
        if !index.messages.is_empty() {
            copy.extend(record::messages(UtcMillis::now().0, messages, true));
        }
        let origin = Origin {
            first: cut,
            created,
            updated: index.updated,
            summary: summary.clone(),
            interrupts: index.interrupts.values().cloned().collect(),
        };
        copy.extend(record::origin(&origin));
        let mut fence = 0;
        for batch in &index.batches[begin..] {
            if batch.fence != fence {
                fence = batch.fence;
                let token = index.claims.iter().find(|(known, _)| *known == fence);
                let Some((_, token)) = token else { return Ok(None) };
                // Only the last claim still has to say how long it holds.
                copy.extend(record::claim(&if fence == claim.fence {
                    claim.clone()
                } else {
                    ClaimRecord { fence, token: *token, owner: 0, until: 0 }
                }));
            }
            if batch.after + 1 < cut && batch.count > 0 {
                let base = header.at;
                copy.extend(self.later_part(session, state, batch, cut, base)?);
            } else {
                copy.extend(self.bytes(session, state, batch)?);
            }
        }
        if claim.fence != fence {
            copy.extend(record::claim(claim));
        }
        Ok(Some(copy))
    }
}

/// Copies of a log in which it was to continue.
fn copies(paths: &Paths) -> Vec<PathBuf> {
    let stem = paths.log.file_stem().unwrap_or_default().as_encoded_bytes();
    let Ok(files) = std::fs::read_dir(&paths.shard) else { return Vec::new() };
    let own = |path: &PathBuf| {
        path.extension().is_some_and(|kind| kind == "next")
            && path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(stem))
    };
    files.filter_map(|file| Some(file.ok()?.path())).filter(own).collect()
}
