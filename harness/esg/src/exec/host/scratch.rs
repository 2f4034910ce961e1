//! The directory that steps write to, always at the same path.
use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;

use crate::exec::start_error::StartError;

/// The directory that steps see.
const WORK: &str = "work";
/// Where the content is while a twin runs.
const ASIDE: &str = "aside";
/// What an earlier worker left.
const BEFORE: &str = "before";
/// The directory of a process that is not needed yet.
const NEXT: &str = "next";
/// Locked while in use.
const LOCK: &str = "lock";

/// The scratch directory and its parent.
///
/// Only the entries named above are ever moved or removed.
#[derive(Debug)]
pub(in crate::exec) struct Scratch {
    root: PathBuf,
    lent: AtomicBool,
    lock: File,
    // Removes the directory. Dropped last.
    temporary: Option<TempDir>,
}

impl Scratch {
    /// A directory that is removed with the worker.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(in crate::exec) fn temporary() -> Result<Self, StartError> {
        let refused =
            |source| refused(&std::env::temp_dir(), "failed to create a directory there", source);
        let made = tempfile::Builder::new().prefix("harness-").tempdir().map_err(refused)?;
        // With links in the path, a step would see another path than its own.
        let root = fs::canonicalize(made.path()).map_err(refused)?;
        Self::open(root, Some(made))
    }

    /// The directory at `path`, which must be empty or a former scratch directory.
    ///
    /// What the last worker left in it is moved aside, not removed.
    ///
    /// # Errors
    /// If it holds anything else, or is in use.
    pub(in crate::exec) fn at(path: &Path) -> Result<Self, StartError> {
        let unusable = |source| refused(path, "failed to create it", source);
        fs::create_dir_all(path).map_err(unusable)?;
        let root = fs::canonicalize(path).map_err(unusable)?;
        for entry in fs::read_dir(&root).map_err(unusable)? {
            let name = entry.map_err(unusable)?.file_name();
            if ![WORK, ASIDE, BEFORE, NEXT, LOCK].iter().any(|known| name == *known) {
                let why = format!("it contains {} (name an empty directory)", name.display());
                return Err(StartError::Scratch { path: root, why, source: None });
            }
        }
        Self::open(root, None)
    }

    fn open(root: PathBuf, temporary: Option<TempDir>) -> Result<Self, StartError> {
        let failed = |source| refused(&root, "failed to prepare it", source);
        let lock = File::create(root.join(LOCK)).map_err(failed)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::Error(source) => failed(source),
            TryLockError::WouldBlock => StartError::Scratch {
                path: root.clone(),
                why: "another worker uses it (name another directory)".to_owned(),
                source: None,
            },
        })?;
        keep(&root).map_err(failed)?;
        make(&root.join(WORK)).map_err(failed)?;
        Ok(Self { root, lent: AtomicBool::new(false), lock, temporary })
    }

    /// The directory that steps see.
    pub(in crate::exec) fn path(&self) -> PathBuf {
        self.root.join(WORK)
    }

    /// Whether it is removed with the worker.
    pub(in crate::exec) fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }

    /// Removes everything in it.
    ///
    /// # Errors
    /// If something cannot be removed.
    pub(in crate::exec) fn clear(&self) -> io::Result<()> {
        let path = self.path();
        remove(&path)?;
        make(&path)
    }

    /// Makes a directory that can take the place of the one that steps see.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(in crate::exec) fn next(self: &Arc<Self>) -> io::Result<Next> {
        let path = self.root.join(NEXT);
        remove(&path)?;
        make(&path)?;
        Ok(Next(Arc::clone(self)))
    }

    /// Whether a twin uses its path.
    pub(in crate::exec) fn is_lent(&self) -> bool {
        self.lent.load(Ordering::Acquire)
    }

    /// Moves the content aside until the loan is dropped. `None` if it is lent already.
    ///
    /// # Errors
    /// If the content cannot be moved. It stays where it was.
    pub(in crate::exec) fn lend(self: &Arc<Self>) -> io::Result<Option<Loan>> {
        if self.lent.swap(true, Ordering::AcqRel) {
            return Ok(None);
        }
        let (work, aside) = (self.path(), self.root.join(ASIDE));
        // The directory itself moves, so open files of the first worker stay open.
        let moved = fs::rename(&work, &aside).and_then(|()| {
            make(&work).inspect_err(|_| {
                fs::rename(&aside, &work).ok();
            })
        });
        if let Err(error) = moved {
            self.lent.store(false, Ordering::Release);
            return Err(error);
        }
        Ok(Some(Loan(Arc::clone(self))))
    }
}

/// Removes what steps left in a scratch directory that is not in use.
///
/// # Errors
/// If something cannot be removed.
pub(crate) fn discard(root: &Path) -> io::Result<()> {
    [WORK, ASIDE, BEFORE, NEXT].iter().try_for_each(|known| remove(&root.join(known)))
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.temporary.is_some() {
            // A step may have removed its own permission to read a directory.
            remove(&self.path()).ok();
        }
        // A process that another thread is starting may hold the file too, until it runs its
        // program.
        self.lock.unlock().ok();
    }
}

/// A directory beside the one that steps see. Removed when dropped.
#[derive(Debug)]
pub(in crate::exec) struct Next(Arc<Scratch>);

impl Next {
    pub(in crate::exec) fn path(&self) -> PathBuf {
        self.0.root.join(NEXT)
    }

    /// Puts it, with the processes that work in it, in the place of the one that steps see, which is
    /// removed.
    ///
    /// # Errors
    /// If that one cannot be removed.
    pub(in crate::exec) fn take_place(self) -> io::Result<()> {
        let work = self.0.path();
        remove(&work)?;
        fs::rename(self.path(), work)
    }
}

impl Drop for Next {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path()) {
            tracing::warn!(%error, path = %self.path().display(), "failed to remove a directory");
        }
    }
}

/// The path, lent to a twin.
#[derive(Debug)]
pub(in crate::exec) struct Loan(Arc<Scratch>);

impl Drop for Loan {
    fn drop(&mut self) {
        let (work, aside) = (self.0.path(), self.0.root.join(ASIDE));
        // If the content cannot be moved back, it stays aside and the first worker stays unusable.
        match remove(&work).and_then(|()| fs::rename(&aside, &work)) {
            Ok(()) => self.0.lent.store(false, Ordering::Release),
            Err(error) => {
                tracing::error!(%error, aside = %aside.display(), "failed to move the scratch directory back");
            }
        }
    }
}

/// Moves what an earlier worker left aside.
fn keep(root: &Path) -> io::Result<()> {
    let (work, aside, before) = (root.join(WORK), root.join(ASIDE), root.join(BEFORE));
    // With a twin there were two directories. The one moved aside is the session's own.
    let left = if aside.exists() { &aside } else { &work };
    if fs::read_dir(left).is_ok_and(|mut entries| entries.next().is_some()) {
        remove(&before)?;
        fs::rename(left, &before)?;
    }
    remove(&root.join(NEXT))?;
    remove(&aside)?;
    remove(&work)
}

fn make(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Removes a directory with its content, or what a step put in its place, if it exists.
fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|found| !found.is_dir()) {
        return fs::remove_file(path);
    }
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            unlock(path)?;
            fs::remove_dir_all(path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Restores the permission to remove what is below `path`, without following links.
fn unlock(path: &Path) -> io::Result<()> {
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop() {
        fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            }
        }
    }
    Ok(())
}

fn refused(path: &Path, why: &str, source: io::Error) -> StartError {
    StartError::Scratch { path: path.to_owned(), why: why.to_owned(), source: Some(source) }
}
