//! Packs: append-only files of many values. Only the process that created a pack appends to it.
//!
//! A file for each value would cost a file and two syncs; a group of values in a pack costs one
//! sync. A pack starts with a mark. Each record is its length, its id and its bytes. The content is
//! not trusted: a value is hashed when it is read, and a malformed record ends the pack.
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::model::Fingerprint;

use super::id::BlobId;

const MARK: &[u8; 8] = b"hblobs1\n";
const HEAD: usize = 4 + 32;

/// No value is larger, whatever the limits: a length has 4 bytes.
pub(super) const LONGEST: u64 = u32::MAX as u64;

/// A pack that was found or created.
#[derive(Debug)]
pub(super) struct Pack {
    pub(super) path: PathBuf,
    /// The length that has been read or written.
    pub(super) size: u64,
    /// The bytes of values that are still live.
    pub(super) live: u64,
}

/// A value in a pack.
pub(super) struct Record {
    pub(super) id: BlobId,
    pub(super) at: u64,
    pub(super) len: u64,
}

/// Opens a file, and fails if it is not a plain file.
fn open(path: &Path) -> io::Result<File> {
    if !std::fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a plain file"));
    }
    File::open(path)
}

/// Creates a new file, accessible to its owner only.
pub(super) fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Creates a pack under a temporary name and locks it, so that no other process cleans it up.
pub(super) fn begin(temporary: &Path, path: &Path) -> io::Result<File> {
    let mut file = create(temporary)?;
    file.lock()?;
    file.write_all(MARK)?;
    std::fs::rename(temporary, path)?;
    Ok(file)
}

/// The size of a new pack.
pub(super) const fn begun() -> u64 {
    MARK.len() as u64
}

/// Writes a record into a buffer. Returns the offset of its bytes.
pub(super) fn record(buffer: &mut Vec<u8>, id: &BlobId, bytes: &[u8]) -> u64 {
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    buffer.extend_from_slice(&len.to_le_bytes());
    buffer.extend_from_slice(id.0.bytes());
    let at = buffer.len() as u64;
    buffer.extend_from_slice(bytes);
    at
}

/// The size of a record without its value.
pub(super) const fn overhead() -> u64 {
    HEAD as u64
}

/// The records of a pack from an offset on, and the end of the last one.
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
        records.push(Record { id: BlobId(Fingerprint::new(id)), at: at + overhead(), len });
        file.seek_relative(i64::from(u32::try_from(len).unwrap_or(u32::MAX)))?;
        at = next;
    }
    Ok((records, at))
}

/// Reads the bytes of a record.
pub(super) fn read(path: &Path, at: u64, len: u64) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    // Allocates nothing for the part that a truncated file lacks.
    if file.metadata()?.len() < at.saturating_add(len) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Whether no process is appending to it.
pub(super) fn is_free(path: &Path) -> bool {
    open(path).is_ok_and(|file| file.try_lock().is_ok())
}
