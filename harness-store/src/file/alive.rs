//! Which stores live.
//!
//! Every open store holds a lock on one byte of a file that all stores of a directory share, at the
//! place that is its number. Nothing is ever written to that file. The system takes the lock away
//! when the store is dropped, when its process ends, however it ends, and when the machine starts
//! anew; so whoever finds the number of a store in a log can tell whether it is still there.
//!
//! The locks are those of an open file (`F_OFD_SETLK` of `fcntl(2)`), so that two stores of one
//! process differ as those of two do. Where the system has none, nobody can tell, and the leases of
//! who is gone have to expire.

use std::io;
use std::path::Path;
use std::sync::Arc;

use harness::store::Token;

use super::disk::{Disk, DiskFile, Mode};

/// What the numbers of stores have that could lock nothing: no file has a place there.
const UNTOLD: u64 = 1 << 63;

/// A store that lives until this is dropped.
#[derive(Debug)]
pub(crate) struct Owner {
    /// Not 0, which is nobody's.
    pub(crate) id: u64,
    /// Open for as long as the store is, with the lock.
    pub(super) file: Arc<dyn DiskFile>,
}

impl Owner {
    /// Shows that there is a store.
    pub(crate) fn appear(disk: &dyn Disk, path: &Path) -> io::Result<Self> {
        let file = disk.open(path, Mode::AppendOrCreate)?;
        loop {
            let id = number();
            match file.lock_byte(id) {
                Ok(true) => return Ok(Self { id, file }),
                Ok(false) => {}
                // Nobody can tell of such a number whether it is locked, so nobody takes it for dead.
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    return Ok(Self { id: id | UNTOLD, file });
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the store of this number lives. If it can not be told, it may.
    pub(crate) fn lives(&self, id: u64) -> bool {
        id == self.id || self.file.is_byte_locked(id).unwrap_or(id != 0)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // A process that is just being started may have the file open, too.
        self.file.unlock_byte(self.id);
    }
}

/// A number that no other store has, small enough for a place in a file.
fn number() -> u64 {
    loop {
        let number = (Token::random().as_u128() >> 66) as u64;
        if number != 0 {
            return number;
        }
    }
}
