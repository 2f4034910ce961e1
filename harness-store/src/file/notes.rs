//! Writing the notes of sessions at rest and making them durable, behind the back of those who wait
//! for an answer.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::disk::{Disk, DiskFile, Mode};
use super::lease::write_small;
use super::rest::Rest;
use super::session::Paths;
use super::tag::Tag;

/// How long a note is left alone: a session that goes on at once writes another, and to sync the
/// first would only keep the disk from syncing its log.
const PAUSE: Duration = Duration::from_secs(1);

/// What is to be done about the note of a path.
#[derive(Debug)]
enum Due {
    /// It is written, and not durable yet.
    Sync(Arc<dyn DiskFile>),
    /// Its log is tagged, and it is not written yet.
    Write(Box<Untold>),
}

#[derive(Debug)]
struct Untold {
    disk: Arc<dyn Disk>,
    log: PathBuf,
    rest: Rest,
}

/// What is to be done, by the paths of the notes.
type All = HashMap<PathBuf, Due>;

/// What the thread that sees to the notes of all stores of this process has before it, once there is
/// one. What the end of the process keeps it from is left to the system, which writes what there is
/// within its own time.
static QUEUE: Queue = Queue { all: Mutex::new(None), more: Condvar::new() };

#[derive(Debug)]
struct Queue {
    all: Mutex<Option<All>>,
    more: Condvar,
}

/// Makes a note durable before long.
pub(crate) fn sync_later(path: &Path, file: Arc<dyn DiskFile>) {
    QUEUE.add(path.to_owned(), Due::Sync(file));
}

/// Writes the note of a session whose log is tagged, if it is still at rest by then.
pub(crate) fn write_later(disk: &Arc<dyn Disk>, paths: &Paths, rest: Rest) {
    let (disk, log) = (Arc::clone(disk), paths.log.clone());
    QUEUE.add(paths.rest.clone(), Due::Write(Box::new(Untold { disk, log, rest })));
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Option<All>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Only the first of many wakes the thread.
    fn add(&'static self, path: PathBuf, due: Due) {
        let mut all = self.lock();
        if all.is_none() {
            let thread = std::thread::Builder::new().name("harness-notes".into());
            if thread.spawn(|| self.see_to_all()).is_err() {
                // Then there is nobody to leave it to.
                drop(all);
                return see_to(All::from([(path, due)]));
            }
        }
        let all = all.get_or_insert_default();
        all.insert(path, due);
        if all.len() == 1 {
            self.more.notify_one();
        }
    }

    fn see_to_all(&self) {
        loop {
            let idle = |all: &mut Option<All>| all.as_ref().is_none_or(HashMap::is_empty);
            let some = self.more.wait_while(self.lock(), idle);
            drop(some);
            std::thread::sleep(PAUSE);
            let all = self.lock().replace(All::new());
            see_to(all.unwrap_or_default());
        }
    }
}

/// Sees to each note once that has come within a pause.
fn see_to(all: All) {
    for (path, due) in all {
        let file = match due {
            Due::Sync(file) => Some(file),
            Due::Write(untold) => untold.write(&path),
        };
        // Should it fail, the note before it stays.
        drop(file.map(|file| file.sync()));
    }
}

impl Untold {
    /// Writes the note, if its log is there and says the same. Whoever takes a log away, or begins
    /// another in its file, has it locked, and so it is here: a note whose log is gone would be
    /// taken for damage.
    fn write(mut self, path: &Path) -> Option<Arc<dyn DiskFile>> {
        let log = self.disk.open(&self.log, Mode::Append).ok()?;
        if !log.try_lock().ok()? {
            return None;
        }
        let there = log.stat().is_ok_and(|found| found.links > 0);
        let tag = Tag::on(&*log).filter(|tag| tag.mark == self.rest.mark());
        let file = tag.filter(|_| there).and_then(|tag| {
            // Its lease was released since, or was not.
            self.rest.released = tag.released.map(|token| token.to_string());
            write_small(&*self.disk, path, &self.rest).ok()
        });
        // A log that was rewritten meanwhile has taken its name without a lock, and may be gone.
        let there = log.stat().is_ok_and(|found| found.links > 0);
        if !there && file.is_some() {
            let _ = self.disk.unlink(path);
        }
        log.unlock();
        file.filter(|_| there)
    }
}

/// Writes a note now that would be written later, and says whether it was.
#[cfg(test)]
pub(super) fn write_now(disk: &Arc<dyn Disk>, path: &Path, rest: &Rest) -> bool {
    let (disk, log) = (Arc::clone(disk), path.with_extension("log"));
    Untold { disk, log, rest: rest.clone() }.write(path).is_some()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::file::tests::recording::{Op, Recording};

    #[test]
    fn a_note_is_synced_once_for_all_that_were_written_within_a_pause() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Recording::default();
        let mut all = All::new();
        for name in ["a", "b", "a", "a"] {
            let path = dir.path().join(name);
            let file = disk.open(&path, Mode::InPlace).unwrap();
            all.insert(path, Due::Sync(file));
        }
        see_to(all);
        let tape = disk.tape.lock().unwrap();
        let mut synced: Vec<usize> = tape
            .ops
            .iter()
            .filter_map(|op| match op {
                Op::Sync(file) => Some(*file),
                _ => None,
            })
            .collect();
        synced.sort_unstable();
        assert_eq!(synced, [1, 2]);
    }
}
