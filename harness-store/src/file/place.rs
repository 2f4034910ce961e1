//! Which directory a store is in, so that a copy of it can be distinguished from it.
//!
//! A plain copy of a store in use has each file of a session as it was at another moment, so that a
//! checkpoint may say more than its log holds. In the store itself that is damage: acknowledged
//! entries are missing. In a copy it shows only when it was made, and the session continues from the
//! end of its log.
//!
//! What shows that a store is a copy is a small file in its directory that says when it was made. A
//! file that was copied was made later, by the clock of the file system, which no program sets. The
//! first store that finds this gives the directory a name of its own, which the checkpoints that are
//! written there bear: for them, missing entries are damage again. Whatever cannot be read, or was
//! lost, or has no time, counts as the store itself.

use std::io;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use harness::store::Token;
use serde::{Deserialize, Serialize};

use super::disk::{Disk, Mode};
use super::lease::{read_small, rewrite_small};

/// How many milliseconds to wait for another process.
const PATIENCE: u32 = 1_000;

/// The file in the directory of a store.
pub(crate) const PLACE: &str = "place";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// A name that no other directory has.
    pub(crate) name: String,
    /// When this file was made, in nanoseconds; `None` where the file system does not say.
    made: Option<u64>,
    /// The store was a copy when it was first opened here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) copied: bool,
}

impl Place {
    /// The place of the store in this directory, which is recorded if it is new. What says that a
    /// store is a copy is made durable if that is asked for.
    pub(crate) fn of(disk: &dyn Disk, dir: &Path, durable: bool) -> io::Result<Self> {
        let path = dir.join(PLACE);
        if let Some(place) = Self::read(disk, &path)?.filter(|place| place.is_here(&path)) {
            return Ok(place);
        }
        let file = disk.open(&path, Mode::InPlace)?;
        // Of several processes that find it new, one decides; the others do not wait for long, as it
        // may be suspended. One that was killed has left nothing whole.
        for _ in 0..PATIENCE {
            if !matches!(file.try_lock(), Ok(false)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let before = Self::read(disk, &path)?;
        if let Some(place) = before.as_ref().filter(|place| place.is_here(&path)) {
            return Ok(place.clone());
        }
        let place =
            Self { name: Token::random().to_string(), made: made(&path), copied: before.is_some() };
        // Without it, the next store decides again.
        let written = rewrite_small(&*file, &place);
        if place.copied && durable {
            written.and_then(|()| file.sync())?;
        }
        file.unlock();
        Ok(place)
    }

    fn read(disk: &dyn Disk, path: &Path) -> io::Result<Option<Self>> {
        read_small(disk, path)
    }

    fn is_here(&self, path: &Path) -> bool {
        self.made.is_none_or(|then| made(path).is_none_or(|made| made == then))
    }

    /// Whether a checkpoint that bears this name may say more than its log holds.
    pub(crate) fn is_foreign(&self, name: Option<&str>) -> bool {
        self.copied && name != Some(&*self.name)
    }
}

fn made(path: &Path) -> Option<u64> {
    let made = std::fs::metadata(path).ok()?.created().ok()?;
    u64::try_from(made.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
}
