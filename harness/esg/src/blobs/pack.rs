//! Packs: files of many values, only ever appended to by the one process that made them.
//!
//! A value of its own file costs a file and two syncs; a group of values in a pack costs one sync.
//! A pack starts with a mark. Each record is its length, its id and its bytes. Nothing in it is
//! trusted: a value is hashed when it is read, and what does not follow the form ends the pack.
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::model::Print;

use super::id::BlobId;

const MARK: &[u8; 8] = b"hblobs1\n";
const HEAD: usize = 4 + 32;

/// No value is longer, whatever the limits say: a length is kept in 4 bytes.
pub(super) const LONGEST: u64 = u32::MAX as u64;

/// A pack that was found or made.
#[derive(Debug)]
pub(super) struct Pack {
    pub(super) path: PathBuf,
    /// How far it has been read or written.
    pub(super) size: u64,
    /// How many of these bytes are values that are still wanted.
    pub(super) live: u64,
}

/// A value in a pack.
pub(super) struct Record {
    pub(super) id: BlobId,
    pub(super) at: u64,
    pub(super) len: u64,
}

/// Opens a file that must be a plain file, not what something else put there.
fn open(path: &Path) -> io::Result<File> {
    if !std::fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a plain file"));
    }
    File::open(path)
}

/// Makes a file that is not there yet, for its owner only.
pub(super) fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes a pack under a name of its own, and takes its lock: whoever else cleans up leaves it alone.
pub(super) fn begin(temporary: &Path, path: &Path) -> io::Result<File> {
    let mut file = create(temporary)?;
    file.lock()?;
    file.write_all(MARK)?;
    std::fs::rename(temporary, path)?;
    Ok(file)
}

/// How many bytes a new pack has.
pub(super) const fn begun() -> u64 {
    MARK.len() as u64
}

/// Writes a record into a buffer, and gives where in it its bytes begin.
pub(super) fn record(buffer: &mut Vec<u8>, id: &BlobId, bytes: &[u8]) -> u64 {
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    buffer.extend_from_slice(&len.to_le_bytes());
    buffer.extend_from_slice(id.0.bytes());
    let at = buffer.len() as u64;
    buffer.extend_from_slice(bytes);
    at
}

/// What a record takes beside its value.
pub(super) const fn overhead() -> u64 {
    HEAD as u64
}

/// The records of a pack from a byte on, and where the last ends.
pub(super) fn scan(path: &Path, from: u64) -> io::Result<(Vec<Record>, u64)> {
    let file = open(path)?;
    let whole = file.metadata()?.len();
    let mut file = BufReader::with_capacity(64 << 10, file);
    let mut at = from;
    if from < begun() {
        let mut mark = [0; MARK.len()];
        file.read_exact(&mut mark)?;
        if &mark != MARK {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a pack of blobs"));
        }
        at = begun();
    } else {
        file.seek(SeekFrom::Start(from))?;
    }
    let mut records = Vec::new();
    while at + overhead() <= whole {
        let mut head = [0; HEAD];
        file.read_exact(&mut head)?;
        let (len, id) = head.split_at(4);
        let len = u64::from(u32::from_le_bytes(len.try_into().unwrap_or_default()));
        let Ok(id) = <[u8; 32]>::try_from(id) else { break };
        let next = at + overhead() + len;
        if next > whole {
            break;
        }
        records.push(Record { id: BlobId(Print::new(id)), at: at + overhead(), len });
        file.seek_relative(i64::from(u32::try_from(len).unwrap_or(u32::MAX)))?;
        at = next;
    }
    Ok((records, at))
}

/// Reads the bytes of a record.
pub(super) fn read(path: &Path, at: u64, len: u64) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    // A file that was cut short must not make room for what it does not have.
    if file.metadata()?.len() < at.saturating_add(len) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Whether nobody is appending to it.
pub(super) fn is_free(path: &Path) -> bool {
    open(path).is_ok_and(|file| file.try_lock().is_ok())
}
