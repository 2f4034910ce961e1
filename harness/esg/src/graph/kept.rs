//! The journal of a graph that is stored in a directory.
//!
//! A file of [lines](super::lines). A last line without a newline was being written when the process
//! died, and is truncated. Any other damage is an error. Values are in the blob store beside the journal,
//! and are durable before the line that refers to them.
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cipher::Cipher;
use crate::error::EsgError;
use crate::exec::discard_scratch;
use crate::ledger::{Journal, JournalError, Record};

use super::lines::Lines;

/// The open file. It is locked while it is open.
#[derive(Debug)]
pub(super) struct DirJournal {
    file: File,
    path: String,
    lines: Lines,
    /// A scratch directory whose content must not outlive the graph.
    scratch: Option<PathBuf>,
}

impl DirJournal {
    /// Opens or creates the journal in `dir`, and reads it.
    pub(super) fn open(
        dir: &Path,
        cipher: Option<Arc<dyn Cipher>>,
    ) -> Result<(Self, Vec<Record>), EsgError> {
        let path = dir.join("journal");
        let shown = path.display().to_string();
        let io = |source| EsgError::io(&shown, source);
        create(dir).map_err(io)?;
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = loop {
            let file = options.open(&path).map_err(io)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(fs::TryLockError::WouldBlock) => return Err(EsgError::in_use(&shown)),
                Err(fs::TryLockError::Error(error)) => return Err(io(error)),
            }
            // Another process may have replaced it before it was locked here.
            if is_at(&file, &path).map_err(io)? {
                break file;
            }
        };
        // From here on it is unlocked in every case.
        let lines = Lines::default();
        let mut journal = Self { file, path: shown.clone(), lines, scratch: None };
        let file = &mut journal.file;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(io)?;
        let (lines, records, whole) = Lines::read(&text, cipher, &shown)?;
        journal.lines = lines;
        if whole < text.len() {
            tracing::warn!(
                journal = shown,
                bytes = text.len() - whole,
                "truncated an incomplete last record"
            );
            file.set_len(whole as u64).map_err(io)?;
            file.seek(SeekFrom::End(0)).map_err(io)?;
            file.sync_all().map_err(io)?;
        }
        let beginning = if whole == 0 { journal.lines.beginning() } else { Vec::new() };
        if !beginning.is_empty() {
            file.write_all(&beginning).and_then(|()| file.sync_all()).map_err(io)?;
        }
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(io)?;
        Ok((journal, records))
    }

    fn io(&self, error: io::Error) -> JournalError {
        JournalError::new(format!("failed to write to `{}`", self.path)).with_source(error)
    }

    /// Removes what steps left in this scratch directory, now and when the journal is closed.
    pub(super) fn clear_scratch(&mut self, scratch: &Path) -> Result<(), EsgError> {
        discard_scratch(scratch)
            .map_err(|error| EsgError::io(&scratch.display().to_string(), error))?;
        self.scratch = Some(scratch.to_owned());
        Ok(())
    }
}

impl Journal for DirJournal {
    fn append(&mut self, records: &[Record]) -> Result<(), JournalError> {
        let lines = self.lines.of(records, &self.path)?;
        if lines.is_empty() {
            return Ok(());
        }
        let end = self.file.metadata().map_err(|error| self.io(error))?.len();
        let written = self.file.write_all(&lines).and_then(|()| self.file.sync_data());
        written.map_err(|error| {
            // A partial record must not be read as the start of the next one.
            if let Err(error) = self.file.set_len(end) {
                tracing::error!(journal = self.path, %error, "failed to truncate an incomplete record");
            }
            self.io(error)
        })?;
        self.lines.wrote(records.len());
        Ok(())
    }

    fn compact(&mut self, snapshot: &Record) -> Result<(), JournalError> {
        let mut lines = self.lines.replaced();
        let mut content = lines.beginning();
        content.extend(lines.of(std::slice::from_ref(snapshot), &self.path)?);
        // The new file is locked already. If this fails, the journal stays as it is.
        self.file = replace(Path::new(&self.path), &content).map_err(|error| self.io(error))?;
        lines.wrote(1);
        self.lines = lines;
        Ok(())
    }
}

impl Drop for DirJournal {
    fn drop(&mut self) {
        // The worker has ended, and no other process has the directory before the journal is unlocked.
        if let Some(scratch) = &self.scratch
            && let Err(error) = discard_scratch(scratch)
        {
            tracing::error!(scratch = %scratch.display(), %error, "failed to remove the files of steps");
        }
        // A process that another thread is starting may hold the file too, until it runs its
        // program. Closing the file alone would keep the lock until then.
        if let Err(error) = self.file.unlock() {
            tracing::debug!(journal = self.path, %error, "failed to unlock a journal");
        }
    }
}

/// Replaces a file by a new one, which is locked before it gets the name.
fn replace(path: &Path, content: &[u8]) -> std::io::Result<File> {
    let new = path.with_extension("new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.read(true).append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&new)?;
    file.lock()?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    if let Some(dir) = path.parent() {
        File::open(dir)?.sync_all()?;
    }
    Ok(file)
}

/// Whether the path leads to the open file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let here = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) => Ok((here.dev(), here.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> std::io::Result<bool> {
    Ok(true)
}

fn create(dir: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}
