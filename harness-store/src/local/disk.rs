//! What is asked of the disk: everything on which durability rests goes through here, so that a
//! test can record it and compute what a loss of power may leave.
#![cfg_attr(not(feature = "file"), allow(dead_code))]

use std::fmt;
use std::fs::{File, Metadata, OpenOptions, TryLockError};
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
    /// As many writes as it takes.
    fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write(bytes)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => bytes = &bytes[written..],
            }
        }
        Ok(())
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
    fn stat(&self) -> io::Result<Stat>;
    /// Makes its contents survive a loss of power.
    fn sync(&self) -> io::Result<()>;
    /// Forgets what the page cache holds of it, as far as that is on disk.
    fn drop_cache(&self);
    /// Locks it against all others, or says that another has it.
    fn try_lock(&self) -> io::Result<bool>;
    /// Locks it together with others, or says that another has it for itself.
    fn try_lock_shared(&self) -> io::Result<bool>;
    fn unlock(&self);
}

pub(crate) trait Disk: Send + Sync + fmt::Debug {
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn DiskFile>>;
    fn make_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory survive a loss of power.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn unlink(&self, path: &Path) -> io::Result<()>;
    /// Whether there is a file of this name, as far as is known.
    fn exists(&self, path: &Path) -> bool;
    /// Identifies the current boot of this machine, where the system says so.
    fn boot_id(&self) -> Option<String> {
        super::clock::boot_id()
    }
}

/// Whether a file or a directory belongs to the user of this process.
pub(crate) fn is_own(found: &Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw()
}

/// The disk of this machine.
#[derive(Debug)]
pub(crate) struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        // What another user may have planted is neither followed nor waited for.
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.read(true).mode(0o600).custom_flags(flags.bits().cast_signed());
        match mode {
            Mode::Read => &mut options,
            Mode::Append => options.append(true),
            Mode::AppendOrCreate => options.append(true).create(true),
            Mode::AppendNew => options.append(true).create_new(true),
            Mode::InPlace => options.write(true).create(true).truncate(false),
        };
        let file = options.open(path)?;
        let found = file.metadata()?;
        if !found.is_file() || !is_own(&found) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is not a regular file of this user",
            ));
        }
        Ok(Arc::new(RealFile(file)))
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

    fn exists(&self, path: &Path) -> bool {
        rustix::fs::access(path, rustix::fs::Access::EXISTS).is_ok()
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
        // `File::metadata` asks for more, which takes twice as long.
        let found = rustix::fs::fstat(&self.0)?;
        // On some systems it is a smaller number.
        #[allow(clippy::useless_conversion)]
        let links = found.st_nlink.into();
        Ok(Stat { len: found.st_size.unsigned_abs(), links })
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
        locked(self.0.try_lock())
    }

    fn try_lock_shared(&self) -> io::Result<bool> {
        locked(self.0.try_lock_shared())
    }

    fn unlock(&self) {
        // Closing the file unlocks it if this should fail.
        let _ = self.0.unlock();
    }
}

fn locked(tried: Result<(), TryLockError>) -> io::Result<bool> {
    match tried {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
