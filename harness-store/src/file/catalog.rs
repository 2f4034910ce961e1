//! Which sessions there are, in the order of lists, as an open store remembers it.
//!
//! The directory stays the truth: what is remembered of a part of it holds for as long as that part
//! was not changed, which its time of change tells, and what is remembered of a log for as long as
//! nothing was written to it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime};

use harness::store::{StoreError, rules};

use super::error::failed;
use super::lease::read_small;
use super::rest::Rest;
use super::session::Paths;
use super::store::Inner;

/// Two changes that lie closer together may bear the same time.
const TICK: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(crate) struct Catalog {
    shards: HashMap<PathBuf, Shard>,
    /// By the keys of lists.
    logs: BTreeMap<Vec<u8>, Known>,
}

#[derive(Debug, Default)]
struct Shard {
    /// `None` if it has to be looked at again, whatever its time says.
    changed: Option<SystemTime>,
    keys: HashMap<PathBuf, Vec<u8>>,
}

#[derive(Debug)]
struct Known {
    log: Arc<Path>,
    /// What a list says of it, and what its log was found to be then.
    rest: Option<(Print, Arc<Rest>)>,
}

/// What tells a log that was written to, or is another, from one that was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Print {
    inode: u64,
    len: u64,
    changed: (i64, i64),
}

impl Print {
    fn of(found: &Metadata) -> Self {
        let changed = (found.mtime(), found.mtime_nsec());
        Self { inode: found.ino(), len: found.len(), changed }
    }
}

impl Inner {
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
    ) -> Result<Option<Arc<Rest>>, StoreError> {
        // Before the log is read: what comes meanwhile makes it another.
        let Ok(found) = std::fs::metadata(log) else { return Ok(None) };
        let print = Print::of(&found);
        {
            let catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((known, rest)) = catalog.logs.get(key).and_then(|it| it.rest.as_ref())
                && *known == print
            {
                return Ok(Some(Arc::clone(rest)));
            }
        }
        let rest = match self.summary(log) {
            Ok(rest) => rest.map(Arc::new),
            // One damaged session keeps nobody from the others: the list has what was last noted of
            // it, or what can be read of it, and whoever opens it is told.
            Err(error) if is_of_one_session(&error) => {
                let note = Paths::of_log(log).rest;
                let rest: Option<Rest> =
                    read_small(&*self.disk, &note).map_err(|error| failed("read", &note, error))?;
                let rest = if rest.is_some() { rest } else { self.legible(log)? };
                return Ok(rest.map(Arc::new));
            }
            Err(error) => return Err(error),
        };
        let mut catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = catalog.logs.get_mut(key) {
            known.rest = rest.clone().map(|rest| (print, rest));
        }
        Ok(rest)
    }
}

/// Whether only the log of one session cannot be read.
pub(crate) fn is_of_one_session(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Corrupt { .. } | StoreError::NewerFormat { .. } | StoreError::LostWrites { .. }
    )
}

/// A place in a list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    /// Behind the row with this key.
    Dividing(&'a [u8]),
    /// Behind all rows of the session whose rows begin so.
    Behind(&'a [u8]),
}
