//! Which sessions there are, in the order of lists, as an open store remembers it.
//!
//! The directory stays the truth: what is remembered of a part of it holds for as long as that part
//! was not changed, which its modification time shows, and what is remembered of a log for as long as
//! nothing was written to it.

use std::collections::{BTreeMap, HashMap};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::checkpoint::Checkpoint;

/// Two changes that lie closer together may bear the same time.
pub(crate) const TICK: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(crate) struct Catalog {
    pub(crate) shards: HashMap<PathBuf, Shard>,
    /// By the keys of lists.
    pub(crate) logs: BTreeMap<Vec<u8>, Known>,
}

#[derive(Debug, Default)]
pub(crate) struct Shard {
    /// `None` if it has to be looked at again, whatever its time says.
    pub(crate) changed: Option<SystemTime>,
    pub(crate) keys: HashMap<PathBuf, Vec<u8>>,
}

#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) log: Arc<Path>,
    /// What a list says of it, and what its log was found to be then.
    pub(crate) rest: Option<(Fingerprint, Arc<Checkpoint>)>,
}

/// Differs between a log and the same log after a write, and between any two logs: a log only grows, and
/// is rewritten into another file. The time is for a file whose number was used before. Two changes may
/// bear the same time, so what was changed [just now](Self::is_new) is not recognized by this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    inode: u64,
    len: u64,
    changed: (i64, i64),
}

impl Fingerprint {
    pub(crate) fn of(found: &Metadata) -> Self {
        let changed = (found.mtime(), found.mtime_nsec());
        Self { inode: found.ino(), len: found.len(), changed }
    }

    /// Whether another log, which is as long and has the same number, may get the same time.
    pub(crate) fn is_new(&self) -> bool {
        let seconds = Duration::from_secs(self.changed.0.max(0).unsigned_abs());
        let changed = SystemTime::UNIX_EPOCH + seconds;
        changed.elapsed().map_or(true, |since| since <= TICK)
    }
}

/// A place in a list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    /// Behind the row with this key.
    Dividing(&'a [u8]),
    /// Behind all rows of the session whose rows begin so.
    Behind(&'a [u8]),
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::{File, OpenOptions, rename};
    use std::io::Write as _;

    use super::*;

    #[test]
    fn logs_differ_that_were_changed_at_the_same_time() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let write = |mut file: File, bytes: &[u8]| {
            file.write_all(bytes).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        };
        let look = || Fingerprint::of(&std::fs::metadata(&log).unwrap());
        write(File::create(&log).unwrap(), b"one\n");
        let begun = look();
        assert_eq!(look(), begun);
        write(OpenOptions::new().append(true).open(&log).unwrap(), b"two\n");
        let grown = look();
        let rewritten = dir.path().join("rewritten");
        write(File::create(&rewritten).unwrap(), b"one\ntwo\n");
        rename(&rewritten, &log).unwrap();
        assert!(begun != grown && grown != look());
    }

    /// A log that was removed and begun again may look the same only within a tick.
    #[tokio::test]
    async fn what_a_list_finds_of_a_log_is_remembered_once_no_other_can_look_the_same() {
        use harness::store::{Batch, Filter, NewEntry, Phase, SessionStore as _, SessionSummary};

        let dir = tempfile::tempdir().unwrap();
        let store = crate::FileStore::open(dir.path()).await.unwrap();
        let session = harness::SessionId::new("x").unwrap();
        let lease = store.claim(&session, Duration::from_secs(600)).await.unwrap().lease;
        let summary = serde_json::json!({"agent": "a", "phase": Phase::Running, "step": "S"});
        let summary: SessionSummary = serde_json::from_value(summary).unwrap();
        let entries = [NewEntry { bytes: b"one", snapshot: false }];
        let batch = Batch { entries: &entries, summary: Some(&summary), ..Batch::default() };
        store.append(&lease, batch).await.unwrap();
        let log = |catalog: &Catalog| Arc::clone(&catalog.logs.values().next().unwrap().log);
        for (ago, remembered) in [(0, false), (3_600, true)] {
            assert_eq!(store.list(&Filter::sessions(), None, 9).await.unwrap().rows.len(), 1);
            let log = log(&store.inner.catalog.lock().unwrap());
            let changed = SystemTime::now() - Duration::from_secs(ago);
            OpenOptions::new().append(true).open(&log).unwrap().set_modified(changed).unwrap();
            for _ in 0..2 {
                assert_eq!(store.list(&Filter::sessions(), None, 9).await.unwrap().rows.len(), 1);
            }
            let catalog = store.inner.catalog.lock().unwrap();
            assert_eq!(catalog.logs.values().next().unwrap().rest.is_some(), remembered, "{ago}");
        }
    }
}
