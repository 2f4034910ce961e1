//! Lists. There is no index beside the logs that could differ from them: a list is made from the
//! checkpoints of settled sessions, and from the logs of the others.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::SystemTime;

use harness::store::{Filter, Listing, OpenInterrupt, Row, StoreError, rules};
use harness::{Seq, SessionId};

use super::catalog::{Catalog, Fingerprint, Known, Place, Shard, TICK};
use super::checkpoint::Checkpoint;
use super::disk::Mode;
use super::error::failed;
use super::inner::Inner;
use super::paths::Paths;
use super::record::{self, Header, Record};
use super::session::State;

impl Inner {
    pub(crate) fn list(
        &self,
        filter: &Filter,
        after: Option<&[u8]>,
        limit: u32,
    ) -> Result<Listing, StoreError> {
        const CHUNK: usize = 256;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX).max(1);
        self.look()?;
        let mut listing = Listing::default();
        let mut logs = self.next_logs(Place::Dividing(after.unwrap_or_default()), CHUNK);
        while let Some((last, _)) = logs.last() {
            let last = last.clone();
            for (key, log) in logs {
                let Some(summary) = self.remembered(&key, &log)? else { continue };
                if !filter.admits(&summary.summary) {
                    continue;
                }
                for row in rows(filter, &summary) {
                    if after.is_some_and(|after| *row.key() <= *after) {
                        continue;
                    }
                    if listing.rows.len() == limit {
                        listing.next = listing.rows.last().map(Row::key);
                        return Ok(listing);
                    }
                    listing.rows.push(row);
                }
            }
            logs = self.next_logs(Place::Behind(&last), CHUNK);
        }
        Ok(listing)
    }

    /// Whose log a file is. `None` if it is none's any more, or none's yet.
    pub(crate) fn id_of(&self, log: &Path) -> Result<Option<SessionId>, StoreError> {
        Ok(self.header_of(log)?.map(|header| header.id))
    }

    fn header_of(&self, log: &Path) -> Result<Option<Header>, StoreError> {
        let file = match self.disk.open(log, Mode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("open", log, error)),
        };
        // The longest id, with every byte escaped, and what stands around it.
        let mut bytes = vec![0; harness::id::MAX_SESSION_ID * 6 + 512];
        let read = file.read_at(&mut bytes, 0).map_err(|error| failed("read", log, error))?;
        let line = bytes[..read].split(|byte| *byte == b'\n').nth(1).unwrap_or_default();
        Ok(match record::is_sound(line).then(|| record::parse(line)).flatten() {
            Some(Record::Header(_, Some(header))) => Some(header),
            // A call that opens the session reports what is wrong with it.
            _ => None,
        })
    }

    /// What a list says of a session. `None` if it does not exist.
    pub(crate) fn summary(&self, log: &Path) -> Result<Option<Checkpoint>, StoreError> {
        let paths = Paths::of_log(log);
        let checkpoint = Checkpoint::read(&*self.disk, &paths)
            .map_err(|error| failed("read", &paths.checkpoint, error))?;
        if let Some(checkpoint) = checkpoint
            && self.is_settled(log, checkpoint.mark.offset)
            // A log that was rewritten since may be as long as it was.
            && self.header_of(log)?.is_some_and(|header| checkpoint.mark.is_in(&header))
        {
            return Ok(Some(checkpoint));
        }
        let Some(id) = self.id_of(log)? else { return Ok(None) };
        let session = self.session(&id);
        let mut state = session.lock();
        session.refresh(&*self.disk, &mut state)?;
        if state.index.removed {
            // The process that removed it was interrupted before it deleted the files.
            self.finish_removal(&session, &mut state)?;
        }
        Ok(if state.index.exists() { Checkpoint::of(&state.index) } else { None })
    }

    /// Whether nothing follows a place in a log but claim records, of which the last may be that of a
    /// release: what was said of the session there still holds.
    fn is_settled(&self, log: &Path, offset: u64) -> bool {
        // A release and a claim.
        const MOST: u64 = 256;
        let Ok(found) = std::fs::metadata(log) else { return false };
        let Some(more @ 1..=MOST) = found.len().checked_sub(offset) else {
            return found.len() == offset;
        };
        let mut bytes = vec![0; usize::try_from(more).unwrap_or(0)];
        let file = self.disk.open(log, Mode::Read);
        let read = file.and_then(|file| file.read_at(&mut bytes, offset)).unwrap_or(0);
        let is_claim = |line: &[u8]| {
            record::is_sound(line) && matches!(record::parse(line), Some(Record::Claim(_)))
        };
        read == bytes.len()
            && bytes.starts_with(b"\n")
            && bytes.ends_with(b"\n")
            && bytes.split(|byte| *byte == b'\n').all(|line| line.is_empty() || is_claim(line))
    }

    /// What a damaged log says of its session before the damage; `None` if that is nothing.
    pub(crate) fn legible(&self, log: &Path) -> Result<Option<Checkpoint>, StoreError> {
        let Some(id) = self.id_of(log)? else { return Ok(None) };
        let session = self.unopened(id, log);
        let file = match self.disk.open(log, Mode::Read) {
            Ok(file) => file,
            // Another process has just removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(session.failed("open", error)),
        };
        let len = file.stat().map_err(|error| session.failed("look at", error))?.len;
        let mut state = State::default();
        // Only how far it comes is asked.
        let _ = session.catch_up(&*file, &mut state, len)?;
        Ok(Checkpoint::of(&state.index).filter(|_| !state.index.removed))
    }

    /// Brings what is remembered of the directory up to date. Costs a look at each part of it, and
    /// at what is new.
    pub(crate) fn look(&self) -> Result<(), StoreError> {
        let wrong = |error| failed("look at", &self.sessions, error);
        let mut catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = HashSet::new();
        for shard in std::fs::read_dir(&self.sessions).map_err(wrong)? {
            let shard = shard.map_err(wrong)?.path();
            let now = SystemTime::now();
            let changed = match std::fs::metadata(&shard).and_then(|found| found.modified()) {
                Ok(changed) => changed,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed("look at", &shard, error)),
            };
            found.insert(shard.clone());
            let known = catalog.shards.get(&shard).and_then(|shard| shard.changed);
            if known != Some(changed) {
                // A change that is about to come must not bear the time of this one.
                let old = now.duration_since(changed).is_ok_and(|age| age > TICK);
                self.look_into(&mut catalog, &shard, old.then_some(changed))?;
            }
        }
        let gone: Vec<PathBuf> =
            catalog.shards.keys().filter(|shard| !found.contains(*shard)).cloned().collect();
        for shard in gone {
            for key in catalog.shards.remove(&shard).unwrap_or_default().keys.values() {
                catalog.logs.remove(key);
            }
        }
        Ok(())
    }

    fn look_into(
        &self,
        catalog: &mut Catalog,
        path: &Path,
        mut changed: Option<SystemTime>,
    ) -> Result<(), StoreError> {
        let mut shard = catalog.shards.remove(path).unwrap_or_default();
        let mut keys = HashMap::with_capacity(shard.keys.len());
        let Ok(files) = std::fs::read_dir(path) else { return Ok(()) };
        for file in files {
            let log = file.map_err(|error| failed("look at", path, error))?.path();
            if log.extension().is_none_or(|kind| kind != "log") {
                continue;
            }
            if let Some(key) = shard.keys.remove(&log) {
                keys.insert(log, key);
            } else if let Some(id) = self.id_of(&log)? {
                let key = rules::list_key(&id, None);
                let known = Known { log: Arc::from(&*log), rest: None };
                catalog.logs.insert(key.clone(), known);
                keys.insert(log, key);
            } else {
                // It may be just about to begin.
                changed = None;
            }
        }
        for key in shard.keys.values() {
            catalog.logs.remove(key);
        }
        catalog.shards.insert(path.to_owned(), Shard { changed, keys });
        Ok(())
    }

    /// The next logs of a list: at most `limit`, from the session on that a place may divide, or
    /// from behind a session.
    pub(crate) fn next_logs(&self, from: Place<'_>, limit: usize) -> Vec<(Vec<u8>, Arc<Path>)> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = match from {
            Place::Dividing(after) => Included(rules::session_part(after)),
            Place::Behind(key) => Excluded(key),
        };
        let logs = catalog.logs.range::<[u8], _>((begin, Unbounded));
        logs.take(limit).map(|(key, known)| (key.clone(), Arc::clone(&known.log))).collect()
    }

    /// What a list says of a session. `None` if it does not exist.
    pub(crate) fn remembered(
        &self,
        key: &[u8],
        log: &Path,
    ) -> Result<Option<Arc<Checkpoint>>, StoreError> {
        // Before the log is read: what comes meanwhile makes it another.
        let Ok(found) = std::fs::metadata(log) else { return Ok(None) };
        let fingerprint = Fingerprint::of(&found);
        let is_new = fingerprint.is_new();
        {
            let catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((known, rest)) = catalog.logs.get(key).and_then(|it| it.rest.as_ref())
                && *known == fingerprint
            {
                return Ok(Some(Arc::clone(rest)));
            }
        }
        let rest = match self.summary(log) {
            Ok(rest) => rest.map(Arc::new),
            // A damaged session hides no other: the list shows its checkpoint, or what can be read of
            // it. A call that opens it reports the damage.
            Err(error) if is_of_one_session(&error) => {
                let paths = Paths::of_log(log);
                let checkpoint = Checkpoint::read(&*self.disk, &paths)
                    .map_err(|error| failed("read", &paths.checkpoint, error))?;
                let found = if checkpoint.is_some() { checkpoint } else { self.legible(log)? };
                return Ok(found.map(Arc::new));
            }
            Err(error) => return Err(error),
        };
        let mut catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = catalog.logs.get_mut(key) {
            let rest = rest.clone().filter(|_| !is_new);
            known.rest = rest.map(|rest| (fingerprint, rest));
        }
        Ok(rest)
    }
}

/// Whether only the log of one session cannot be read.
fn is_of_one_session(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Corrupt { .. } | StoreError::NewerFormat { .. } | StoreError::LostWrites { .. }
    )
}

fn rows(filter: &Filter, rest: &Checkpoint) -> Vec<Row> {
    let mut row = Row::new(rest.id.clone(), rest.summary.clone(), Seq(rest.head));
    (row.created, row.updated) = (rest.created, rest.updated);
    if !filter.interrupts {
        return vec![row];
    }
    let of = |interrupt: &OpenInterrupt| {
        let mut row = row.clone();
        row.interrupt = Some(interrupt.clone());
        row
    };
    let mut rows: Vec<Row> = rest.interrupts.iter().map(of).collect();
    rows.sort_by_key(Row::key);
    rows
}
