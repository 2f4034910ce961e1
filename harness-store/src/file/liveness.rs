//! Which stores are open, so that the lease of a dead holder is free at once.
//!
//! Each open store holds an exclusive lock on an empty file of its own, whose name is the store's
//! number. The system releases the lock when the store is dropped, when its process ends, however it
//! ends, and when the machine restarts. A process that finds the number of a store in a claim record
//! tries to lock the file: if that succeeds, or if the file is missing, the store is closed. The next
//! store that is opened gives the file its own number: to make a file and to remove it would cost as
//! much as a sync.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::store::Token;

use super::disk::{Disk, DiskFile, Mode};

/// Set in the number of a store on a file system without locks, which counts as open until its
/// leases expire.
const UNKNOWN: u64 = 1 << 63;

/// A store that is open until this is dropped.
#[derive(Debug)]
pub(crate) struct Liveness {
    /// The store's number. Not 0, which stands for no store.
    pub(crate) id: u64,
    dir: PathBuf,
    disk: Arc<dyn Disk>,
    pub(super) file: Arc<dyn DiskFile>,
}

impl Liveness {
    /// Takes a number and locks its file.
    pub(crate) fn new(disk: &Arc<dyn Disk>, dir: PathBuf) -> io::Result<Self> {
        match disk.make_dir(&dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        loop {
            let id = number();
            let own = path(&dir, id);
            let file = match take_over(&**disk, &dir, &own) {
                Some(file) => file,
                None => disk.open(&own, Mode::AppendNew)?,
            };
            let id = match file.try_lock() {
                Ok(true) if disk.exists(&own) => id,
                // Another store has taken the file over before it was locked.
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    disk.unlink(&own)?;
                    id | UNKNOWN
                }
                Err(error) => return Err(error),
            };
            return Ok(Self { id, dir, disk: Arc::clone(disk), file });
        }
    }

    /// Whether the store with this number is open, as far as the system says.
    pub(crate) fn is_open(&self, id: u64) -> bool {
        let known = id & UNKNOWN == 0;
        id == self.id || id != 0 && (!known || is_locked(&*self.disk, &path(&self.dir, id)))
    }
}

impl Drop for Liveness {
    fn drop(&mut self) {
        // A process that is being forked may have the file open, too.
        self.file.unlock();
    }
}

fn path(dir: &Path, id: u64) -> PathBuf {
    dir.join(format!("{id:016x}"))
}

/// A number that no other store has.
fn number() -> u64 {
    loop {
        let number = (Token::random().as_u128() >> 66) as u64;
        if number != 0 {
            return number;
        }
    }
}

/// Whether a store has this file locked. Shared locks let any number of processes ask.
fn is_locked(disk: &dyn Disk, path: &Path) -> bool {
    match disk.open(path, Mode::Read) {
        Err(error) => error.kind() != io::ErrorKind::NotFound,
        Ok(file) => match file.try_lock_shared() {
            Ok(free) => {
                file.unlock();
                // The next store may have taken the file over since it was opened.
                !free && disk.exists(path)
            }
            Err(_) => true,
        },
    }
}

/// Locks the file of a store that is closed and renames it.
fn take_over(disk: &dyn Disk, dir: &Path, to: &Path) -> Option<Arc<dyn DiskFile>> {
    std::fs::read_dir(dir).ok()?.flatten().find_map(|found| {
        let file = disk.open(&found.path(), Mode::Append).ok()?;
        if !file.try_lock().unwrap_or(false) {
            return None;
        }
        // No two stores have one number, so the name is that of this file, or of none any more.
        if disk.rename(&found.path(), to).is_err() {
            file.unlock();
            return None;
        }
        Some(file)
    })
}
