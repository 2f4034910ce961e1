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

/// Differs between a log and the same log after a write, and between any two logs.
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
}

/// A place in a list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    /// Behind the row with this key.
    Dividing(&'a [u8]),
    /// Behind all rows of the session whose rows begin so.
    Behind(&'a [u8]),
}
