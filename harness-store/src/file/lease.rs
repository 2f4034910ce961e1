//! The state of a lease: the clock of leases, and the file beside a log that says until when its last
//! claim was renewed. (A claim record without an owner releases it; `liveness` says whether the store
//! that made the claim is open.)
//!
//! None of this decides what is in a log; that is the order of its records alone. It decides only
//! when a claim is polite. So it is never synced, and whatever cannot be read counts as not there.

use std::io;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub(crate) use crate::local::clock::{boot_millis, deadline, on_the_wall};

use super::disk::{Disk, DiskFile, Mode};
use super::record;

/// How much of a small file is read at first.
const CHUNK: usize = 4096;

/// What the file beside a log says of its last claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Renewal {
    pub(crate) epoch: String,
    pub(crate) fence: u64,
    /// `None` if it was released: so the first stores, and backups, say it.
    pub(crate) until: Option<u64>,
}

/// What is small and written in place: its line ends before what an earlier, longer one has left
/// after it, and its checksum shows whether it is being written just now.
pub(crate) fn write_small(
    disk: &dyn Disk,
    path: &Path,
    value: &impl Serialize,
) -> io::Result<Arc<dyn DiskFile>> {
    let file = disk.open(path, Mode::InPlace)?;
    rewrite_small(&*file, value)?;
    Ok(file)
}

/// Writes it again into the same file.
pub(crate) fn rewrite_small(file: &dyn DiskFile, value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string(value)?;
    let text = format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes()));
    file.write_at(text.as_bytes(), 0)
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
    // Another process may be writing it.
    for _ in 0..3 {
        if let Some(value) = small(&first_line(&*file)?) {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// What is in a file up to its first newline; nothing that a loss of power has left zeros of.
fn first_line(file: &dyn DiskFile) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        let begin = line.len();
        line.resize(begin + CHUNK.max(begin), 0);
        let read = file.read_at(&mut line[begin..], begin as u64)?;
        line.truncate(begin + read);
        let new = &line[begin..];
        if let Some(end) = new.iter().position(|byte| matches!(byte, b'\n' | 0)) {
            line.truncate(begin + end);
            return Ok(line);
        }
        if read == 0 {
            return Ok(line);
        }
    }
}

/// What is small, as it was read; `None` if it is not whole.
pub(crate) fn small<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Option<T> {
    let text = std::str::from_utf8(bytes.split(|byte| *byte == b'\n').next()?).ok()?;
    let (sum, json) = text.split_once(' ')?;
    record::is_sound(format!("{sum}{json}").as_bytes())
        .then(|| serde_json::from_str(json).ok())
        .flatten()
}
