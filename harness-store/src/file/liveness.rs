//! Which stores are open, so that the lease of a dead holder is free at once.
//!
//! Each open store holds an exclusive lock on an empty file of its own, whose name is the store's
//! number. The system releases the lock when the store is dropped, when its process ends, however it
//! ends, and when the machine restarts. A process that finds the number of a store in a claim record
//! tries to lock the file: if that succeeds, or if the file is missing, the store is closed.

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
        sweep(&**disk, &dir);
        loop {
            let id = number();
            let path = dir.join(name(id));
            let file = match disk.open(&path, Mode::AppendNew) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                opened => opened?,
            };
            let id = match file.try_lock() {
                Ok(true) if file.stat()?.links > 0 => id,
                // Another store has swept the file before it was locked.
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    disk.unlink(&path)?;
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
        id == self.id || id != 0 && (!known || is_locked(&*self.disk, &self.dir.join(name(id))))
    }
}

impl Drop for Liveness {
    fn drop(&mut self) {
        let _ = self.disk.unlink(&self.dir.join(name(self.id)));
        // A process that is being forked may have the file open, too.
        self.file.unlock();
    }
}

fn name(id: u64) -> String {
    format!("{id:016x}")
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
                !free
            }
            Err(_) => true,
        },
    }
}

/// Removes the files of stores that were not closed.
fn sweep(disk: &dyn Disk, dir: &Path) {
    let Ok(files) = std::fs::read_dir(dir) else { return };
    for path in files.flatten().map(|file| file.path()) {
        let Ok(file) = disk.open(&path, Mode::Read) else { continue };
        if file.try_lock_shared().unwrap_or(false) {
            let _ = disk.unlink(&path);
        }
        file.unlock();
    }
}
