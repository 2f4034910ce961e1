//! A disk that writes down what it is asked, and can be made to fail.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::file::disk::{Disk, DiskFile, Mode, RealDisk, Stat};

/// What reaches a disk. Files are numbered in the order in which they are made.
#[derive(Clone, Debug)]
pub(in crate::file) enum Op {
    MakeDir(PathBuf),
    Create(PathBuf, usize),
    Write(usize, u64, Vec<u8>),
    Sync(usize),
    SyncDir(PathBuf),
    Rename(PathBuf, PathBuf),
    Unlink(PathBuf),
}

#[derive(Debug, Default)]
pub(in crate::file) struct Tape {
    pub(in crate::file) ops: Vec<Op>,
    files: HashMap<PathBuf, usize>,
    made: usize,
}

#[derive(Debug, Default)]
pub(in crate::file) struct Recording {
    pub(in crate::file) tape: Arc<Mutex<Tape>>,
    pub(in crate::file) faults: Arc<Faults>,
    /// How many bytes were read.
    pub(in crate::file) read: Arc<AtomicUsize>,
    /// The most that was asked for at once.
    pub(in crate::file) largest: Arc<AtomicUsize>,
}

/// What goes wrong, each thing once for each number set.
#[derive(Debug, Default)]
pub(in crate::file) struct Faults {
    pub(in crate::file) syncs: AtomicUsize,
    /// Writes that find no room.
    pub(in crate::file) full: AtomicUsize,
    /// Writes of which only a few bytes find room.
    pub(in crate::file) short: AtomicUsize,
    /// How many bytes find room of the next record that continues a log in another file, and one.
    pub(in crate::file) moved: AtomicUsize,
    /// Opens of files with this ending, for which no descriptor is left.
    pub(in crate::file) no_descriptor: Mutex<Option<&'static str>>,
    /// Syncs of directories.
    pub(in crate::file) names: AtomicUsize,
    /// The file system has no locks.
    pub(in crate::file) no_locks: AtomicBool,
    /// Syncs wait while this is set.
    pub(in crate::file) stalled: AtomicBool,
}

fn take(fault: &AtomicUsize) -> bool {
    fault.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

impl Disk for Recording {
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let mut fault = self.faults.no_descriptor.lock().unwrap();
        if fault.is_some_and(|kind| path.extension().is_some_and(|found| found == kind)) {
            *fault = None;
            return Err(rustix::io::Errno::MFILE.into());
        }
        drop(fault);
        let existed = path.exists();
        let file = RealDisk.open(path, mode)?;
        let mut tape = self.tape.lock().unwrap();
        if !existed {
            tape.files.remove(path);
        }
        let number = tape.files.get(path).copied().unwrap_or_else(|| {
            tape.made += 1;
            let number = tape.made;
            tape.files.insert(path.to_owned(), number);
            number
        });
        if !existed {
            tape.ops.push(Op::Create(path.to_owned(), number));
        }
        let (tape, faults) = (Arc::clone(&self.tape), Arc::clone(&self.faults));
        let (read, largest) = (Arc::clone(&self.read), Arc::clone(&self.largest));
        Ok(Arc::new(RecordingFile { file, number, tape, faults, read, largest }))
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.make_dir(path)?;
        self.tape.lock().unwrap().ops.push(Op::MakeDir(path.to_owned()));
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        if take(&self.faults.names) {
            return Err(io::Error::other("the disk is broken"));
        }
        self.tape.lock().unwrap().ops.push(Op::SyncDir(path.to_owned()));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)?;
        let mut tape = self.tape.lock().unwrap();
        // What is in a directory is not found by its new name.
        if let Some(number) = tape.files.remove(from) {
            tape.files.insert(to.to_owned(), number);
        }
        tape.ops.push(Op::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        RealDisk.unlink(path)?;
        let mut tape = self.tape.lock().unwrap();
        tape.files.remove(path);
        tape.ops.push(Op::Unlink(path.to_owned()));
        Ok(())
    }

    fn exists(&self, path: &Path) -> bool {
        RealDisk.exists(path)
    }
}

#[derive(Debug)]
struct RecordingFile {
    file: Arc<dyn DiskFile>,
    number: usize,
    tape: Arc<Mutex<Tape>>,
    faults: Arc<Faults>,
    read: Arc<AtomicUsize>,
    largest: Arc<AtomicUsize>,
}

impl DiskFile for RecordingFile {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        if take(&self.faults.full) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let mut bytes = if take(&self.faults.short) { &bytes[..bytes.len() / 2] } else { bytes };
        if bytes.get(9) == Some(&b'V') {
            match self.faults.moved.swap(0, Ordering::SeqCst) {
                0 => {}
                1 => return Err(io::ErrorKind::StorageFull.into()),
                room => bytes = &bytes[..(room - 1).min(bytes.len() - 1)],
            }
        }
        let mut tape = self.tape.lock().unwrap();
        let offset = self.file.stat()?.len;
        let written = self.file.write(bytes)?;
        assert_eq!(written, bytes.len());
        tape.ops.push(Op::Write(self.number, offset, bytes.to_vec()));
        Ok(written)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(bytes, offset)?;
        self.tape.lock().unwrap().ops.push(Op::Write(self.number, offset, bytes.to_vec()));
        Ok(())
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.file.read_at(bytes, offset)?;
        self.read.fetch_add(read, Ordering::SeqCst);
        self.largest.fetch_max(bytes.len(), Ordering::SeqCst);
        Ok(read)
    }

    fn stat(&self) -> io::Result<Stat> {
        self.file.stat()
    }

    fn sync(&self) -> io::Result<()> {
        while self.faults.stalled.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        if take(&self.faults.syncs) {
            return Err(io::Error::other("the disk is broken"));
        }
        self.tape.lock().unwrap().ops.push(Op::Sync(self.number));
        Ok(())
    }

    fn drop_cache(&self) {}

    fn try_lock(&self) -> io::Result<bool> {
        if self.faults.no_locks.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.file.try_lock()
    }

    fn try_lock_shared(&self) -> io::Result<bool> {
        self.file.try_lock_shared()
    }

    fn unlock(&self) {
        self.file.unlock();
    }
}

/// The disk of a machine that has restarted.
#[derive(Debug)]
pub(in crate::file) struct Restarted;

impl Disk for Restarted {
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        RealDisk.open(path, mode)
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.make_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        RealDisk.unlink(path)
    }

    fn exists(&self, path: &Path) -> bool {
        RealDisk.exists(path)
    }

    fn boot_id(&self) -> Option<String> {
        Some("another".into())
    }
}
