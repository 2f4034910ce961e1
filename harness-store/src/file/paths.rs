//! The files of a session, and which names are known to be durable.

use std::path::{Path, PathBuf};

use super::disk::{Disk, Mode};

/// The directory of the sessions.
pub(crate) const SESSIONS: &str = "sessions";

/// The directory of the sessions of a backup that is not finished.
pub(crate) const UNFINISHED: &str = "unfinished";

/// The file in a part of the directory whose length counts the changes there.
pub(crate) const CHANGES: &str = "changes";

/// Where the files of a session are.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    pub(crate) shard: PathBuf,
    pub(crate) log: PathBuf,
    /// Up to where the log was acknowledged when the session last settled.
    pub(crate) checkpoint: PathBuf,
    /// Until when the last claim holds.
    pub(crate) lease: PathBuf,
    /// Where a reader of the log can start.
    pub(crate) start: PathBuf,
}

impl Paths {
    pub(crate) fn of_log(log: &Path) -> Self {
        Self {
            shard: log.parent().unwrap_or(log).to_owned(),
            log: log.to_owned(),
            checkpoint: log.with_extension("checkpoint"),
            lease: log.with_extension("lease"),
            start: log.with_extension("start"),
        }
    }
}

/// An empty file that is made in a directory once the directory's name is durable. It need not be
/// durable itself: if it is missing, the name is synced again.
const NAMED: &str = "named";

/// Whether the name of a directory is known to be durable.
pub(crate) fn is_named(disk: &dyn Disk, dir: &Path) -> bool {
    disk.exists(&dir.join(NAMED))
}

/// Records that the name of a directory is durable.
pub(crate) fn set_named(disk: &dyn Disk, dir: &Path) {
    // If this fails, the name is synced once more.
    let _ = disk.open(&dir.join(NAMED), Mode::AppendOrCreate);
}
