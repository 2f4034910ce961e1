//! Which stores live: the sign of life of a process, which its stores share.
//!
//! It is a file that the process has locked for as long as it has a store open. The system unlocks
//! it when the process ends, however it ends, and when the machine starts anew. A byte for each store
//! says whether it was dropped, so that what one of them held is free though the process goes on.
//!
//! Nothing of it is ever synced: after a loss of power no file is locked.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use harness::store::Token;

use super::disk::{Disk, DiskFile, Mode};

/// How many bits of an id number the stores of a process. The others are those of its sign.
const STORES: u32 = 24;

/// What stands for a store that is open.
const OPEN: u8 = b'1';

/// What stands for one that was dropped.
const DROPPED: u8 = b'0';

/// The signs of this process, by the directories they are in.
static SIGNS: Mutex<Vec<(PathBuf, Weak<Sign>)>> = Mutex::new(Vec::new());

/// The sign that this process lives.
#[derive(Debug)]
struct Sign {
    number: u64,
    path: PathBuf,
    /// Locked.
    file: Arc<dyn DiskFile>,
    /// What tells it from another file of its name.
    inode: u64,
    /// The store's directory is known to survive a loss of power.
    named: bool,
    stores: Mutex<Stores>,
}

#[derive(Debug, Default)]
struct Stores {
    last: u64,
    open: HashSet<u64>,
}

/// A store that lives until this is dropped.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) id: u64,
    sign: Arc<Sign>,
    dir: PathBuf,
    disk: Arc<dyn Disk>,
}

impl Owner {
    /// Shows that there is another store in a process that has shown itself. `None` if it has not, or
    /// if what it showed is gone; or if the directory has to be `named` and may not be.
    pub(crate) fn join(disk: &Arc<dyn Disk>, dir: &Path, named: bool) -> Option<Self> {
        let sign = {
            let signs = SIGNS.lock().unwrap_or_else(PoisonError::into_inner);
            signs.iter().filter(|(of, _)| of == dir).find_map(|(_, sign)| sign.upgrade())?
        };
        let there = (sign.named || !named) && disk.inode(&sign.path).ok() == Some(sign.inode);
        there.then(|| sign.store(disk, dir).ok()).flatten()
    }

    /// Shows the first store of a process, whose directory is `named` or not.
    pub(crate) fn appear(disk: &Arc<dyn Disk>, dir: &Path, named: bool) -> io::Result<Self> {
        let number = (Token::random().as_u128() >> (64 + STORES)) as u64;
        let path = dir.join(name(number));
        // It gets its name once it is locked, so that nobody finds it and takes it for dead.
        let new = path.with_extension("new");
        let mut taken = None;
        for dead in the_dead(&**disk, dir)? {
            // To rename a file costs far less than to make one. Only one of those who want it can.
            if taken.is_none() && disk.rename(&dead, &new).is_ok() {
                // Who looked whether it is alive may have it locked for a moment.
                taken = locked(&**disk, &new, Mode::InPlace).ok().flatten();
                if taken.is_some() {
                    continue;
                }
                disk.unlink(&new)?;
            }
            // Another process may do the same.
            let _ = disk.unlink(&dead);
        }
        let file = match taken {
            Some(file) => file,
            None => locked(&**disk, &new, Mode::InPlace)?
                .ok_or_else(|| io::Error::other("a new file is locked by somebody else"))?,
        };
        disk.rename(&new, &path)?;
        let inode = disk.inode(&path)?;
        let sign = Arc::new(Sign { number, path, file, inode, named, stores: Mutex::default() });
        if disk.is_shared() {
            let mut signs = SIGNS.lock().unwrap_or_else(PoisonError::into_inner);
            signs.retain(|(of, sign)| of != dir && sign.strong_count() > 0);
            signs.push((dir.to_owned(), Arc::downgrade(&sign)));
        }
        sign.store(disk, dir)
    }

    /// Whether the store of this `id` lives.
    pub(crate) fn lives(&self, id: u64) -> bool {
        let (number, store) = (id >> STORES, id & ((1 << STORES) - 1));
        if number == self.sign.number {
            return self.sign.stores().open.contains(&store);
        }
        let path = self.dir.join(name(number));
        let file = match self.disk.open(&path, Mode::Read) {
            Ok(file) => file,
            Err(error) => return error.kind() != io::ErrorKind::NotFound,
        };
        let mut byte = [OPEN];
        // If it cannot be told, its leases have to expire.
        file.is_locked().unwrap_or(true)
            && !(file.read_at(&mut byte, store).is_ok() && byte == [DROPPED])
            // One that is locked under another name by now is the sign of another process.
            && !matches!(
                self.disk.inode(&path),
                Err(error) if error.kind() == io::ErrorKind::NotFound
            )
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let store = self.id & ((1 << STORES) - 1);
        // Should it fail, what it held is free when that expires, or with the process.
        let _ = self.sign.file.write_at(&[DROPPED], store);
        self.sign.stores().open.remove(&store);
    }
}

impl Sign {
    fn stores(&self) -> std::sync::MutexGuard<'_, Stores> {
        self.stores.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another store of this process.
    fn store(self: Arc<Self>, disk: &Arc<dyn Disk>, dir: &Path) -> io::Result<Owner> {
        let store = {
            let mut stores = self.stores();
            if stores.last + 1 >= 1 << STORES {
                return Err(io::Error::other("this process has opened too many stores"));
            }
            stores.last += 1;
            let store = stores.last;
            stores.open.insert(store);
            store
        };
        let id = self.number << STORES | store;
        let owner = Owner { id, dir: dir.to_owned(), disk: Arc::clone(disk), sign: self };
        owner.sign.file.write_at(&[OPEN], store)?;
        Ok(owner)
    }
}

impl Drop for Sign {
    fn drop(&mut self) {
        // A process that is just being started may have it open, too.
        self.file.unlock();
    }
}

/// The file, once it is locked; `None` if somebody else has it locked.
fn locked(disk: &dyn Disk, path: &Path, mode: Mode) -> io::Result<Option<Arc<dyn DiskFile>>> {
    let file = disk.open(path, mode)?;
    Ok(file.try_lock()?.then_some(file))
}

/// The signs of processes that are gone. They say nothing more than their absence.
fn the_dead(disk: &dyn Disk, dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut dead = Vec::new();
    for sign in std::fs::read_dir(dir)? {
        let path = sign?.path();
        // One that has no name yet may not be locked yet.
        if path.extension().is_some() {
            continue;
        }
        if let Ok(file) = disk.open(&path, Mode::Read)
            && !file.is_locked()?
        {
            dead.push(path);
        }
    }
    Ok(dead)
}

fn name(number: u64) -> String {
    format!("{number:010x}")
}
