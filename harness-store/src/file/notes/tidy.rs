//! Keeping the file of notes durable, small, and free of what was removed.

use std::io;
use std::path::Path;

use harness::store::Token;

use super::{Key, Known, Line, NAME, Notes, begun, life};
use crate::file::disk::Mode;
use crate::file::record;

/// How many bytes may be out of date before it is worth while to copy the others, beside as many as
/// still hold.
pub(super) const FLOOR: u64 = 64 * 1024;

impl Known {
    /// Whether most of the file is out of date.
    fn is_stale(&self) -> bool {
        self.len > 2 * self.live + FLOOR
    }

    /// Whether nobody has seen to that for long, as happens where no process lives for a second.
    pub(super) fn is_swollen(&self) -> bool {
        self.len > 4 * self.live + 4 * FLOOR
    }
}

impl Notes {
    /// Makes what was written durable, and copies what still holds when most does not.
    pub(super) fn tend(&self) {
        let file = self.lock().file.clone();
        if let Some(file) = file.filter(|_| self.durable) {
            // Should it fail, the notes before it stay.
            let _ = file.sync();
        }
        let mut known = self.lock();
        if known.is_stale() {
            // Should it fail, the file stays as it is.
            let _ = self.copy(&mut known);
        }
    }

    /// Copies what still holds into a new file, and says that the notes go on there.
    fn copy(&self, known: &mut Known) -> io::Result<()> {
        self.refresh(known)?;
        let Some(file) = known.file.clone().filter(|_| known.is_stale()) else { return Ok(()) };
        // One at a time, or each would take the other's copy for one that was left behind. Nobody
        // waits for this lock, and who writes does not ask for it.
        if !file.try_lock()? {
            return Ok(());
        }
        let copied = (|| {
            self.sweep()?;
            let name = format!("{NAME}.{}.next", Token::random());
            let next = self.shard.join(&name);
            let done = self.copy_to(&next, known).and_then(|offset| {
                let files = known.files;
                file.write(&record::line('V', &format!("{offset} {name}")))?;
                if self.durable {
                    file.sync()?;
                }
                self.refresh(known)?;
                Ok(known.files != files)
            });
            if !matches!(done, Ok(true)) {
                // Somebody has written meanwhile. Where the record was written and counts, the file
                // has another name by now.
                let _ = self.disk.unlink(&next);
            }
            done.map(drop)
        })();
        file.unlock();
        copied
    }

    /// Takes away what those have left behind who did not come to the end of a copy.
    fn sweep(&self) -> io::Result<()> {
        for file in std::fs::read_dir(&self.shard)? {
            let path = file?.path();
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            if name.starts_with(NAME.as_bytes()) && name.ends_with(b".next") {
                let _ = self.disk.unlink(&path);
            }
        }
        Ok(())
    }

    /// Writes what still holds to a new file. Returns how much of this one that is taken from.
    fn copy_to(&self, next: &Path, known: &Known) -> io::Result<u64> {
        let Some(file) = &known.file else { return Err(io::ErrorKind::NotFound.into()) };
        let mut places: Vec<_> = known.places.iter().collect();
        places.sort_unstable_by_key(|(_, place)| place.offset);
        let mut copy = if known.complete { begun() } else { Vec::new() };
        for (key, place) in places {
            let mut line = vec![0; place.len];
            let read = file.read_at(&mut line, place.offset)?;
            if !matches!(Line::parse(&line[..read]), Some(Line::Note { key: found, .. }) if found == *key)
            {
                continue;
            }
            copy.push(b'\n');
            copy.extend_from_slice(&line);
            copy.push(b'\n');
            if let Some(token) = place.released {
                let text = format!("{:032x} {:032x}", key.0, token.as_u128());
                copy.extend(record::line('R', &text));
            }
        }
        let made = self.disk.open(next, Mode::AppendNew)?;
        let mut left = &copy[..];
        while !left.is_empty() {
            match made.write(left)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => left = &left[written..],
            }
        }
        if self.durable {
            made.sync()?;
            // Its name must be there when the notes say where they go on.
            self.disk.sync_dir(&self.shard)?;
        }
        Ok(known.len)
    }

    /// Removes all that was noted of one life of a session, so that no byte of it is left.
    pub(crate) fn remove(&self, key: Key, of: &str) -> io::Result<()> {
        let of = life(of)?;
        let mut known = self.lock();
        self.refresh(&mut known)?;
        if !known.places.contains_key(&key) {
            return Ok(());
        }
        // First: a copy that somebody is making counts no more.
        self.write(&mut known, &record::line('D', &format!("{:032x} {of:032x}", key.0)))?;
        let Some(file) = known.file.clone() else { return Ok(()) };
        let mut bytes = vec![0; usize::try_from(known.len).unwrap_or(usize::MAX)];
        let read = file.read_at(&mut bytes, 0)?;
        let in_place = self.disk.open(&self.path, Mode::InPlace)?;
        let mut start = 0;
        for line in bytes[..read].split_inclusive(|byte| *byte == b'\n') {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            let own = match Line::parse(text) {
                Some(Line::Note { key: found, life, .. }) => found == key && life == of,
                _ => false,
            };
            if own {
                // Nothing else is ever written over, so nobody else writes there.
                in_place.write_at(&vec![b' '; text.len()], start)?;
            }
            start += line.len() as u64;
        }
        if self.durable {
            in_place.sync()?;
        }
        Ok(())
    }
}
