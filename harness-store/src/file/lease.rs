//! Who holds a session: the clock that leases are timed by, the sign of life of a store, and the
//! file beside a log that says how long its last claim holds.
//!
//! None of this decides what is in a log; that is the order of its records alone. It decides only
//! when a claim is polite. So it is never synced, and whatever cannot be read counts as not there.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use harness::UtcMillis;
use harness::store::Token;
use serde::{Deserialize, Serialize};

use super::disk::{Disk, DiskFile, Mode};
use super::record;

/// Milliseconds since the machine started, counting those in which it was suspended.
pub(crate) fn boot_millis() -> u64 {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let millis = Duration::from_secs(now.tv_sec.unsigned_abs()).as_millis()
            + Duration::from_nanos(now.tv_nsec.unsigned_abs()).as_millis();
        u64::try_from(millis).unwrap_or(u64::MAX)
    }
    // Elsewhere the clock on the wall is the only one that all processes share and that goes on
    // while the machine is suspended.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        UtcMillis::now().0
    }
}

/// When a lease ends that is held for `ttl` from now on.
pub(crate) fn deadline(ttl: Duration) -> u64 {
    boot_millis().saturating_add(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX))
}

/// A moment of the clock of leases by the clock on the wall.
pub(crate) fn on_the_wall(until: u64) -> UtcMillis {
    let left = i128::from(until) - i128::from(boot_millis());
    let left = i64::try_from(left).unwrap_or(i64::MAX);
    UtcMillis(UtcMillis::now().0.saturating_add_signed(left))
}

/// The sign that a store lives: a file that it has locked for as long as it is open. The system
/// unlocks it when the process ends, however it ends, and when the machine starts anew.
///
/// It stays behind, unlocked, and whoever opens the directory next gives it another name: to make a
/// file costs far more than to rename one.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) id: u64,
    dir: PathBuf,
    disk: Arc<dyn Disk>,
    /// Locked.
    file: Arc<dyn DiskFile>,
}

impl Owner {
    pub(crate) fn appear(disk: Arc<dyn Disk>, dir: &Path) -> io::Result<Self> {
        let id = (Token::random().as_u128() >> 64) as u64;
        // It gets its name once it is locked, so that nobody finds it and takes it for dead.
        let new = dir.join(format!("{id:016x}.new"));
        let mut taken = None;
        for dead in the_dead(&*disk, dir)? {
            // Of several who want it only one renames it.
            if taken.is_none() && disk.rename(&dead, &new).is_ok() {
                // Who looked whether it is alive may have it locked for a moment.
                taken = locked(&*disk, &new, Mode::Append).ok().flatten();
                if taken.is_some() {
                    continue;
                }
                disk.unlink(&new)?;
            }
            // Another store may do the same.
            let _ = disk.unlink(&dead);
        }
        let file = match taken {
            Some(file) => file,
            None => locked(&*disk, &new, Mode::AppendNew)?
                .ok_or_else(|| io::Error::other("a new file is locked by somebody else"))?,
        };
        disk.rename(&new, &dir.join(name(id)))?;
        Ok(Self { id, dir: dir.to_owned(), disk, file })
    }

    /// Whether the store that showed itself under `id` lives.
    pub(crate) fn lives(&self, id: u64) -> bool {
        if id == self.id {
            return true;
        }
        let path = self.dir.join(name(id));
        match self.disk.open(&path, Mode::Read) {
            // If it cannot be told, its leases have to expire. One that is locked under another
            // name by now is the sign of another store.
            Ok(file) => file.is_locked().unwrap_or(true) && is_there(&*self.disk, &path),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // A process that is just being started may have it open, too.
        self.file.unlock();
    }
}

fn is_there(disk: &dyn Disk, path: &Path) -> bool {
    !matches!(disk.open(path, Mode::Read), Err(error) if error.kind() == io::ErrorKind::NotFound)
}

/// The file, once it is locked; `None` if somebody else has it locked.
fn locked(disk: &dyn Disk, path: &Path, mode: Mode) -> io::Result<Option<Arc<dyn DiskFile>>> {
    let file = disk.open(path, mode)?;
    Ok(file.try_lock()?.then_some(file))
}

/// The signs of stores that are gone. They say nothing more than their absence.
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

fn name(id: u64) -> String {
    format!("{id:016x}")
}

/// What the file beside a log says of its last claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Renewal {
    pub(crate) life: String,
    pub(crate) fence: u64,
    /// `None` if it was released.
    pub(crate) until: Option<u64>,
}

/// What is small and written in place: its line ends before what an earlier, longer one has left
/// behind it, and its checksum tells whether it is being written just now.
pub(crate) fn write_small(
    disk: &dyn Disk,
    path: &Path,
    value: &impl Serialize,
) -> io::Result<Arc<dyn DiskFile>> {
    let text = serde_json::to_string(value)?;
    let text = format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes()));
    let file = disk.open(path, Mode::InPlace)?;
    file.write_at(text.as_bytes(), 0)?;
    Ok(file)
}

/// `None` if there is none that is whole.
pub(crate) fn read_small<T: for<'de> Deserialize<'de>>(
    disk: &dyn Disk,
    path: &Path,
) -> io::Result<Option<T>> {
    let file = match disk.open(path, Mode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // Somebody may be writing it.
    for _ in 0..3 {
        let len = usize::try_from(file.stat()?.len).unwrap_or(0);
        let mut bytes = vec![0; len];
        let read = file.read_at(&mut bytes, 0)?;
        bytes.truncate(read);
        if let Some(value) = small(&bytes) {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

fn small<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Option<T> {
    let text = std::str::from_utf8(bytes.split(|byte| *byte == b'\n').next()?).ok()?;
    let (sum, json) = text.split_once(' ')?;
    record::is_sound(format!("{sum}{json}").as_bytes())
        .then(|| serde_json::from_str(json).ok())
        .flatten()
}
