//! Which stores are open, so that the lease of a dead holder is free at once.
//!
//! Each open store holds an exclusive lock on a small file of its own, with its number in it. The
//! system releases the lock when the store is dropped, when its process ends, however it ends, and
//! when the machine restarts. The next store that is opened locks the same file and takes the next
//! number: to make a file and to remove it would cost as much as a sync. The number, which is in the
//! claim records of the store, says which file that is, and during which boot of the machine.
//!
//! | the file | the store |
//! |---|---|
//! | is locked, with the store's number in it | is open |
//! | is not locked, or has another number in it | is closed |
//! | is missing, or the file system has no locks | is closed if the machine has restarted since; otherwise it may be open, and its leases are held until they expire |
//!
//! All containers of one kernel have the same boot id, and see each other's locks.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::store::Token;

use super::disk::{Disk, DiskFile, Mode};

/// Set in the number of a store on a file system without locks.
const UNKNOWN: u64 = 1 << 63;

/// Set in the number of a store that stays with its file. The first stores gave a file that they
/// took over another name, so that of theirs a missing one says that the store is closed.
const STAYS: u64 = 1 << 62;

/// Where the parts of a number begin: a number of the boot, that of the file, and the round.
const BOOT: u32 = 46;
const SLOT: u32 = 14;
const ROUNDS: u64 = 1 << SLOT;

/// A store that is open until this is dropped.
#[derive(Debug)]
pub(crate) struct Liveness {
    /// The store's number. Not 0, which stands for no store.
    pub(crate) id: u64,
    boot: u64,
    dir: PathBuf,
    disk: Arc<dyn Disk>,
    pub(crate) file: Arc<dyn DiskFile>,
}

impl Liveness {
    /// Locks the file of a closed store, or a new one, and takes the number of its next round.
    pub(crate) fn new(disk: &Arc<dyn Disk>, dir: PathBuf) -> io::Result<Self> {
        match disk.make_dir(&dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let boot = disk.boot_id().map_or(0, |id| boot_number(&id));
        let mut kept = slots(&dir).into_iter();
        loop {
            let next = kept.next();
            let slot = next.unwrap_or_else(|| Token::random().as_u128() as u32);
            let own = path(&dir, slot);
            let file = match disk.open(&own, Mode::InPlace) {
                Ok(file) => file,
                // It is not a file of this user.
                Err(_) if next.is_some() => continue,
                Err(error) => return Err(error),
            };
            let locked = match file.try_lock() {
                Ok(true) if file.stat()?.links > 0 => true,
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    disk.unlink(&own)?;
                    false
                }
                Err(error) => return Err(error),
            };
            let round = (holder(&*file)?.unwrap_or(0) + 1) % ROUNDS;
            let mut id = STAYS | boot << BOOT | u64::from(slot) << SLOT | round;
            // On a full disk, nothing distinguishes this store from the one before it.
            if !locked || file.write_at(format!("{id:016x}").as_bytes(), 0).is_err() {
                id |= UNKNOWN;
            }
            return Ok(Self { id, boot, dir, disk: Arc::clone(disk), file });
        }
    }

    /// Whether the store with this number may be open. If the system cannot say, it counts as open,
    /// so that its leases are held until they expire.
    pub(crate) fn is_open(&self, id: u64) -> bool {
        if id == self.id || id == 0 {
            return id != 0;
        }
        if id & STAYS == 0 {
            let path = self.dir.join(format!("{id:016x}"));
            return id & UNKNOWN != 0 || matches!(self.lock(&path), Lock::Held(_));
        }
        let then = id >> BOOT & 0xffff;
        let restarted = then != 0 && self.boot != 0 && then != self.boot;
        if id & UNKNOWN != 0 {
            return !restarted;
        }
        match self.lock(&path(&self.dir, (id >> SLOT) as u32)) {
            Lock::Missing => !restarted,
            Lock::Free => false,
            Lock::Held(holder) => holder.is_none_or(|holder| holder == id),
        }
    }

    /// Shared locks let any number of processes ask.
    fn lock(&self, path: &Path) -> Lock {
        let file = match self.disk.open(path, Mode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Lock::Missing,
            Err(_) => return Lock::Held(None),
        };
        if file.try_lock_shared().unwrap_or(false) {
            file.unlock();
            return Lock::Free;
        }
        Lock::Held(holder(&*file).unwrap_or(None))
    }
}

impl Drop for Liveness {
    fn drop(&mut self) {
        // A process that is being forked may have the file open, too.
        self.file.unlock();
    }
}

/// Whether a store has a file locked.
enum Lock {
    Missing,
    Free,
    /// By the store with this number, if that can be read.
    Held(Option<u64>),
}

fn path(dir: &Path, slot: u32) -> PathBuf {
    dir.join(format!("{slot:08x}"))
}

/// The files of stores that there are.
fn slots(dir: &Path) -> Vec<u32> {
    let Ok(found) = std::fs::read_dir(dir) else { return Vec::new() };
    let slot = |name: &str| if name.len() == 8 { u32::from_str_radix(name, 16).ok() } else { None };
    found.flatten().filter_map(|file| slot(file.file_name().to_str()?)).collect()
}

/// The number in a file.
fn holder(file: &dyn DiskFile) -> io::Result<Option<u64>> {
    let mut bytes = [0; 16];
    let read = file.read_at(&mut bytes, 0)?;
    let text = std::str::from_utf8(&bytes[..read]).ok().filter(|text| text.len() == bytes.len());
    Ok(text.and_then(|text| u64::from_str_radix(text, 16).ok()))
}

/// A boot id in 16 bits, of which two rarely agree. Not 0, which stands for none.
fn boot_number(id: &str) -> u64 {
    u64::from(crc32fast::hash(id.as_bytes()) & 0xffff).max(1)
}
