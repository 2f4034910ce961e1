//! The journal of a graph that is kept: what was done to its program, and each execution.
//!
//! A file of lines: 16 hex digits of the BLAKE3 hash of what follows, a space, a record as JSON. A
//! line is complete with its newline. A last line which is not was being written when the process
//! died: it is cut off. Damage anywhere else is an error. Values are in the blob store beside it, and
//! are durable before the line that speaks of them.
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::blobs::Blobs;
use crate::error::EsgError;
use crate::program::Operation;
use crate::trace::Execution;

/// One line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Record {
    /// The program changed.
    Edited(Operation),
    /// A step ran.
    Ran(Arc<Execution>),
    /// No execution of the step so far is to be relied on.
    Invalid(Arc<str>),
    /// A replay came to its end, and these executions stand for its steps, in order.
    Settled { run: u64, executions: Vec<u64> },
}

/// The open file. It is locked as long as it is open.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    path: String,
}

/// Writes down an execution, after its values.
pub(super) fn tell(
    journal: &mut Option<Journal>,
    execution: &Arc<Execution>,
    blobs: &mut Blobs,
) -> Result<(), EsgError> {
    let Some(journal) = journal else { return Ok(()) };
    blobs.flush()?;
    journal.append([Record::Ran(execution.clone())])
}

impl Journal {
    /// Opens or makes the journal in `dir`, and reads it.
    pub(super) fn open(dir: &Path) -> Result<(Self, Vec<Record>), EsgError> {
        let path = dir.join("journal");
        let shown = path.display().to_string();
        let io = |source| EsgError::io(&shown, source);
        create(dir).map_err(io)?;
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(EsgError::in_use(&shown)),
            Err(fs::TryLockError::Error(error)) => return Err(io(error)),
        }
        // From here on it is unlocked, whatever comes.
        let mut journal = Self { file, path: shown.clone() };
        let file = &mut journal.file;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(io)?;
        let (records, whole) = read(&text, &shown)?;
        if whole < text.len() {
            tracing::warn!(
                journal = shown,
                bytes = text.len() - whole,
                "an incomplete last record is cut off"
            );
            file.set_len(whole as u64).map_err(io)?;
            file.seek(SeekFrom::End(0)).map_err(io)?;
            file.sync_all().map_err(io)?;
        }
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(io)?;
        Ok((journal, records))
    }

    /// Appends records, all or none, and syncs.
    pub(super) fn append(
        &mut self,
        records: impl IntoIterator<Item = Record>,
    ) -> Result<(), EsgError> {
        let mut lines = Vec::new();
        for record in records {
            let json = serde_json::to_vec(&record)
                .map_err(|error| EsgError::encode(&self.path, &error))?;
            lines.extend_from_slice(digest(&json).as_bytes());
            lines.push(b' ');
            lines.extend_from_slice(&json);
            lines.push(b'\n');
        }
        if lines.is_empty() {
            return Ok(());
        }
        let end = self.file.metadata().map_err(|error| EsgError::io(&self.path, error))?.len();
        let written = self.file.write_all(&lines).and_then(|()| self.file.sync_data());
        written.map_err(|error| {
            // What is there of it must not be taken for the beginning of the next record.
            if let Err(error) = self.file.set_len(end) {
                tracing::error!(journal = self.path, %error, "a failed record could not be cut off");
            }
            EsgError::io(&self.path, error)
        })
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // A process that is just being started by another thread may hold the file too, until it
        // runs its program: closing it alone would leave the lock behind for that long.
        if let Err(error) = self.file.unlock() {
            tracing::debug!(journal = self.path, %error, "a journal could not be unlocked");
        }
    }
}

fn create(dir: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

fn digest(json: &[u8]) -> String {
    blake3::hash(json).to_hex()[..16].to_owned()
}

/// The records, and how many bytes they take.
fn read(text: &[u8], path: &str) -> Result<(Vec<Record>, usize), EsgError> {
    let (mut records, mut at) = (Vec::new(), 0);
    while let Some(length) = text[at..].iter().position(|&byte| byte == b'\n') {
        let line = &text[at..at + length];
        let record = line
            .split_at_checked(17)
            .filter(|(head, json)| head[16] == b' ' && head[..16] == *digest(json).as_bytes())
            .and_then(|(_, json)| serde_json::from_slice(json).ok());
        match record {
            Some(record) => records.push(record),
            None => return Err(EsgError::damaged(path, at)),
        }
        at += length + 1;
    }
    Ok((records, at))
}
