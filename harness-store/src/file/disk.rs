//! What is asked of the disk: everything on which durability rests goes through here, so that a
//! test can record it and tell what a loss of power may leave.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

/// What an open file is found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) len: u64,
    /// How many names it has: with none it was removed, though writes to it still succeed.
    pub(crate) links: u64,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// To append to; it must exist.
    Append,
    /// To append to; made if it is missing.
    AppendOrCreate,
    /// To append to; it must not exist.
    AppendNew,
    /// To write in place; made if it is missing.
    InPlace,
    /// Only to read.
    Read,
}

pub(crate) trait DiskFile: Send + Sync + fmt::Debug {
    /// One `write`. May write less than it was given.
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
    fn stat(&self) -> io::Result<Stat>;
    /// Makes its contents survive a loss of power.
    fn sync(&self) -> io::Result<()>;
    /// Forgets what the page cache holds of it, as far as that is on disk.
    fn drop_cache(&self);
    /// Locks it against all others, or says that another has it.
    fn try_lock(&self) -> io::Result<bool>;
    /// Whether somebody has it locked.
    fn is_locked(&self) -> io::Result<bool>;
    fn unlock(&self);
}

pub(crate) trait Disk: Send + Sync + fmt::Debug {
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn DiskFile>>;
    fn make_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory survive a loss of power.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn unlink(&self, path: &Path) -> io::Result<()>;
    /// What tells the file of this name from others that have or had it.
    fn inode(&self, path: &Path) -> io::Result<u64>;
    /// What tells the device that a file is on from others.
    fn device(&self, path: &Path) -> io::Result<u64>;
    /// Whether a file has at most so many bytes, and all of them can be read without waiting.
    fn is_cached(&self, path: &Path, most: usize) -> bool;
    /// Whether all who ask for this disk ask for the same.
    fn is_shared(&self) -> bool;
}

/// The disk of this machine.
#[derive(Debug)]
pub(crate) struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).mode(0o600);
        match mode {
            Mode::Read => &mut options,
            Mode::Append => options.append(true),
            Mode::AppendOrCreate => options.append(true).create(true),
            Mode::AppendNew => options.append(true).create_new(true),
            Mode::InPlace => options.write(true).create(true).truncate(false),
        };
        Ok(Arc::new(RealFile(options.open(path)?)))
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::DirBuilder::new().mode(0o700).create(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn inode(&self, path: &Path) -> io::Result<u64> {
        Ok(std::fs::metadata(path)?.ino())
    }

    fn device(&self, path: &Path) -> io::Result<u64> {
        Ok(std::fs::metadata(path)?.dev())
    }

    #[cfg(target_os = "linux")]
    fn is_cached(&self, path: &Path, most: usize) -> bool {
        use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
        use rustix::io::ReadWriteFlags;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let found = rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::CACHED);
        let Ok(file) = found.map(File::from) else { return false };
        let Ok(len) = file.metadata().map(|found| found.len()) else { return false };
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if len > most {
            return false;
        }
        let mut bytes = vec![0; len];
        let room = &mut [io::IoSliceMut::new(&mut bytes)];
        rustix::io::preadv2(&file, room, 0, ReadWriteFlags::NOWAIT).is_ok_and(|read| read == len)
    }

    #[cfg(not(target_os = "linux"))]
    fn is_cached(&self, _path: &Path, _most: usize) -> bool {
        false
    }

    fn is_shared(&self) -> bool {
        true
    }
}

#[derive(Debug)]
pub(crate) struct RealFile(File);

impl DiskFile for RealFile {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match (&self.0).write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            match self.0.read_at(&mut bytes[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn stat(&self) -> io::Result<Stat> {
        let found = self.0.metadata()?;
        Ok(Stat { len: found.len(), links: found.nlink() })
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn drop_cache(&self) {
        // Only advice: where it is not taken, the cache is read as before.
        #[cfg(target_os = "linux")]
        let _ = rustix::fs::fadvise(&self.0, 0, None, rustix::fs::Advice::DontNeed);
    }

    fn try_lock(&self) -> io::Result<bool> {
        match self.0.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn is_locked(&self) -> io::Result<bool> {
        // A shared lock, so that two who look at once do not take each other for the owner.
        match self.0.try_lock_shared() {
            Ok(()) => {
                self.unlock();
                Ok(false)
            }
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn unlock(&self) {
        // Closing the file unlocks it if this should fail.
        let _ = self.0.unlock();
    }
}
