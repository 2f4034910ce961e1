//! The notes that sessions at rest leave: one file for each part of the directory.
//!
//! A note says up to where a log was acknowledged, so that what is missing from it is missed, and
//! what a list says of the session. To make a file costs as much as to make a record durable, and
//! a note is left at every rest; so the sessions of one part of the directory share a file that is
//! made once. It is written as logs are: every record is one line, written by one `write` to the
//! end, and the last that is said of a session holds.
//!
//! | kind | fields | meaning |
//! |---|---|---|
//! | `N` | session, life, JSON | a session rests |
//! | `R` | session, token | the lease it came to rest under is released |
//! | `D` | session, life | it is removed: all before of that life is void |
//! | `B` | | the part of the directory was made by a version that leaves its notes here |
//! | `V` | own offset, name | the notes go on in another file |
//!
//! Nobody holds a lock while writing. When most of the file is out of date, what still holds is
//! copied, and a `V` says so. It counts only if nothing has come since the copy was made, and
//! everybody who has written looks whether it came before them: so no note is lost, wherever the
//! process ends that copies.
//!
//! A line that is torn or damaged is passed over: the note before it holds, which is as true.

mod later;
mod tidy;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use harness::store::Token;

use super::disk::{Disk, DiskFile, Mode};
use super::record;
use super::rest::Rest;

/// What the file is called.
const NAME: &str = "rest.notes";

/// How often a note is written anew whose file was copied meanwhile.
const ATTEMPTS: usize = 100;

/// A session, by the beginning of what its log is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key(u128);

impl Key {
    /// Of a log that a store has made. Of any other file it is that of no session.
    pub(crate) fn of(log: &Path) -> Self {
        let name = log.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        Self(name.get(..32).and_then(|name| u128::from_str_radix(name, 16).ok()).unwrap_or(0))
    }
}

/// The notes of the sessions of one part of the directory, as an open store knows them.
#[derive(Debug)]
pub(crate) struct Notes {
    disk: Arc<dyn Disk>,
    shard: PathBuf,
    path: PathBuf,
    /// Whether they are to survive a loss of power.
    durable: bool,
    known: Mutex<Known>,
}

/// What was read of the file.
#[derive(Debug, Default)]
struct Known {
    file: Option<Arc<dyn DiskFile>>,
    /// How long the file was when it was last looked at.
    len: u64,
    /// How far its lines were read.
    end: u64,
    places: HashMap<Key, Place>,
    /// Bytes of what still holds.
    live: u64,
    /// The file in which the notes go on.
    moved: Option<String>,
    /// No notes of earlier versions lie beside it.
    complete: bool,
    /// How many files were read, one after the other.
    files: u64,
}

/// Where the note of a session stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    life: u128,
    offset: u64,
    len: usize,
    released: Option<Token>,
}

/// A line of the file.
#[derive(Debug)]
enum Line<'a> {
    Begun,
    Note { key: Key, life: u128, json: &'a str },
    Released { key: Key, token: Token },
    Removed { key: Key, life: u128 },
    Moved { offset: u64, name: &'a str },
}

impl<'a> Line<'a> {
    /// `None` if it is not whole.
    fn parse(line: &'a [u8]) -> Option<Self> {
        if !record::is_sound(line) {
            return None;
        }
        let text = std::str::from_utf8(&line[8..]).ok()?;
        let (kind, rest) = text.split_at_checked(1)?;
        let (first, second) = rest.split_once(' ')?;
        let hex = |text| u128::from_str_radix(text, 16).ok();
        Some(match kind {
            "N" => {
                let (life, json) = second.split_once(' ')?;
                Self::Note { key: Key(hex(first)?), life: hex(life)?, json }
            }
            "R" => Self::Released { key: Key(hex(first)?), token: Token::from_u128(hex(second)?) },
            "D" => Self::Removed { key: Key(hex(first)?), life: hex(second)? },
            "B" => Self::Begun,
            "V" => Self::Moved { offset: first.parse().ok()?, name: second },
            _ => return None,
        })
    }
}

/// What the file begins with where earlier versions have left nothing.
fn begun() -> Vec<u8> {
    record::line('B', "0 ")
}

fn life(text: &str) -> io::Result<u128> {
    u128::from_str_radix(text, 16).map_err(io::Error::other)
}

impl Known {
    /// Takes what stands in the file from [`Known::end`] on. A line that has no end yet stays unread.
    fn advance(&mut self, bytes: &[u8]) {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let mut start = self.end;
        for line in bytes[..whole].split_inclusive(|byte| *byte == b'\n') {
            self.take(&line[..line.len() - 1], start);
            start += line.len() as u64;
            if self.moved.is_some() {
                break;
            }
        }
        self.end = start;
    }

    fn take(&mut self, line: &[u8], offset: u64) {
        match Line::parse(line) {
            Some(Line::Begun) => self.complete = true,
            Some(Line::Note { key, life, .. }) => {
                let place = Place { life, offset, len: line.len(), released: None };
                self.live += line.len() as u64 + 2;
                if let Some(before) = self.places.insert(key, place) {
                    self.live -= before.len as u64 + 2;
                }
            }
            Some(Line::Released { key, token }) => {
                if let Some(place) = self.places.get_mut(&key) {
                    place.released = Some(token);
                }
            }
            Some(Line::Removed { key, life }) => {
                if self.places.get(&key).is_some_and(|place| place.life == life)
                    && let Some(before) = self.places.remove(&key)
                {
                    self.live -= before.len as u64 + 2;
                }
            }
            // The copy holds all before this record only if nothing has come between.
            Some(Line::Moved { offset: own, name }) if own + 1 == offset => {
                self.moved = Some(name.to_owned());
            }
            Some(Line::Moved { .. }) | None => {}
        }
    }

    fn forget(&mut self) {
        *self = Self { files: self.files + 1, ..Self::default() };
    }
}

impl Notes {
    pub(crate) fn new(disk: Arc<dyn Disk>, shard: &Path, durable: bool) -> Self {
        let (shard, path) = (shard.to_owned(), shard.join(NAME));
        Self { disk, shard, path, durable, known: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // What a panic has left half read is read anew.
        self.known.lock().unwrap_or_else(|poisoned| {
            let mut known = PoisonError::into_inner(poisoned);
            known.forget();
            self.known.clear_poison();
            known
        })
    }

    /// Whether they were read, which is done here if there are at most so many bytes and nobody has
    /// to wait for them.
    pub(crate) fn are_read(&self, most: usize) -> bool {
        let Ok(mut known) = self.known.try_lock() else { return false };
        if known.file.is_none()
            && let Some((file, bytes)) = self.disk.open_cached(&self.path, most)
        {
            known.file = Some(file);
            known.advance(&bytes);
            known.len = bytes.len() as u64;
        }
        known.file.is_some()
    }

    /// Reads what others have written since.
    fn refresh(&self, known: &mut Known) -> io::Result<()> {
        for _ in 0..ATTEMPTS {
            let Some(file) = known.file.clone() else {
                known.file = self.open()?;
                if known.file.is_none() {
                    return Ok(());
                }
                continue;
            };
            let stat = file.stat()?;
            if stat.links == 0 || stat.len < known.len {
                known.forget();
                continue;
            }
            if stat.len > known.len {
                let len = usize::try_from(stat.len - known.end).unwrap_or(usize::MAX);
                let mut bytes = vec![0; len];
                let read = file.read_at(&mut bytes, known.end)?;
                known.advance(&bytes[..read]);
                known.len = stat.len;
            }
            let Some(name) = known.moved.take() else { return Ok(()) };
            self.follow(&*file, known, &name)?;
        }
        Err(io::Error::other("the notes are copied again and again"))
    }

    fn open(&self) -> io::Result<Option<Arc<dyn DiskFile>>> {
        match self.disk.open(&self.path, Mode::Append) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // What cannot be written can still be read.
            Err(error) if super::session::is_read_only(&error) => {
                self.disk.open(&self.path, Mode::Read).map(Some)
            }
            Err(error) => Err(error),
        }
    }

    /// Gives the file in which the notes go on the name of the file before, unless somebody has.
    fn follow(&self, file: &dyn DiskFile, known: &mut Known, name: &str) -> io::Result<()> {
        let next = self.shard.join(Path::new(name).file_name().unwrap_or_default());
        match self.disk.rename(&next, &self.path) {
            Ok(()) if self.durable => self.disk.sync_dir(&self.shard)?,
            Ok(()) => {}
            // Where it is gone, and nothing came in the place of this file, this one goes on.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if file.stat()?.links > 0 {
                    known.len = known.end;
                    return Ok(());
                }
            }
            Err(error) => return Err(error),
        }
        known.forget();
        Ok(())
    }

    /// What was last noted of a session.
    pub(crate) fn find(&self, key: Key) -> io::Result<Option<Rest>> {
        let mut known = self.lock();
        self.refresh(&mut known)?;
        let (Some(place), Some(file)) = (known.places.get(&key), &known.file) else {
            return Ok(None);
        };
        let mut line = vec![0; place.len];
        let read = file.read_at(&mut line, place.offset)?;
        Ok(match Line::parse(&line[..read]) {
            Some(Line::Note { key: found, json, .. }) if found == key => {
                serde_json::from_str(json).ok()
            }
            // It was removed by somebody else, or damaged since.
            _ => None,
        })
    }

    /// Whether a session came to rest under the lease of this token, and that is released.
    pub(crate) fn is_released(&self, key: Key, token: Token) -> io::Result<bool> {
        let mut known = self.lock();
        self.refresh(&mut known)?;
        Ok(known.places.get(&key).is_some_and(|place| place.released == Some(token)))
    }

    /// Notes that a session rests. What it says must be durable, if anything is to be.
    ///
    /// The note becomes durable behind the caller's back, within about a second: until then, a loss
    /// of power leaves the note before it, which is as true.
    pub(crate) fn leave(self: &Arc<Self>, key: Key, rest: &Rest) -> io::Result<()> {
        let json = serde_json::to_string(rest)?;
        let text = format!("{:032x} {:032x} {json}", key.0, life(&rest.life)?);
        let mut known = self.lock();
        self.write(&mut known, &record::line('N', &text))?;
        let swollen = known.is_swollen();
        drop(known);
        match tokio::runtime::Handle::try_current() {
            Ok(_) if self.durable && !swollen => later::tend_later(Arc::clone(self)),
            // Who calls from no runtime waits for everything.
            _ => self.tend(),
        }
        Ok(())
    }

    /// Notes that the lease is released under which a session came to rest.
    pub(crate) fn release(&self, key: Key, token: Token) -> io::Result<()> {
        let text = format!("{:032x} {:032x}", key.0, token.as_u128());
        self.write(&mut self.lock(), &record::line('R', &text))
    }

    /// Makes the file, in a part of the directory that was just made. Its name is durable once the
    /// others are that are made there.
    pub(crate) fn begin(&self) -> io::Result<()> {
        let file = self.disk.open(&self.path, Mode::AppendOrCreate)?;
        file.write(&begun()).map(drop)
    }

    /// Whether earlier versions may have left notes beside this file.
    pub(crate) fn are_complete(&self) -> bool {
        self.lock().complete
    }

    /// Writes one record, into the file in which the notes go on.
    fn write(&self, known: &mut Known, line: &[u8]) -> io::Result<()> {
        if known.file.is_none() {
            self.refresh(known)?;
        }
        for _ in 0..ATTEMPTS {
            let file = match &known.file {
                Some(file) => Arc::clone(file),
                None => {
                    self.disk.open(&self.path, Mode::AppendOrCreate)?;
                    if self.durable {
                        self.disk.sync_dir(&self.shard)?;
                    }
                    self.refresh(known)?;
                    continue;
                }
            };
            let written = file.write(line)?;
            if written < line.len() {
                // The rest is not written behind it: somebody else may have been faster.
                return Err(io::ErrorKind::StorageFull.into());
            }
            let stat = file.stat()?;
            if stat.links > 0 && stat.len == known.len + written as u64 && known.end == known.len {
                known.advance(line);
                known.len = stat.len;
                return Ok(());
            }
            let files = known.files;
            self.refresh(known)?;
            if known.files == files {
                return Ok(());
            }
            // It stands behind the place where the notes go on elsewhere.
        }
        Err(io::Error::other("the notes are copied again and again"))
    }
}

#[cfg(test)]
mod tests;
