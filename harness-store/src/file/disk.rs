//! What is asked of the disk: everything on which durability rests goes through here, so that a
//! test can record it and tell what a loss of power may leave.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

use super::locks;

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
    /// Begins to write the first page of the file to the disk, and does not wait until it is there.
    fn start_sync(&self);
    /// Makes its contents survive a loss of power.
    fn sync(&self) -> io::Result<()>;
    /// The tag of the file, if it has one: a few bytes beside its contents, which are set at once.
    fn tag(&self) -> Option<Vec<u8>>;
    fn set_tag(&self, tag: &[u8]) -> io::Result<()>;
    fn drop_tag(&self);
    /// Forgets what the page cache holds of it, as far as that is on disk.
    fn drop_cache(&self);
    /// Locks it against all others, or says that another has it.
    fn try_lock(&self) -> io::Result<bool>;
    fn unlock(&self);
    /// Locks the byte at a place until the file is closed, or says that another open file has it.
    ///
    /// # Errors
    /// [`Unsupported`](io::ErrorKind::Unsupported) where nobody can.
    fn lock_byte(&self, at: u64) -> io::Result<bool>;
    /// Whether another open file has the byte at a place locked.
    fn is_byte_locked(&self, at: u64) -> io::Result<bool>;
    fn unlock_byte(&self, at: u64);
}

pub(crate) trait Disk: Send + Sync + fmt::Debug {
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn DiskFile>>;
    fn make_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory survive a loss of power.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn unlink(&self, path: &Path) -> io::Result<()>;
    /// Whether there is something of this name, as far as can be told.
    fn exists(&self, path: &Path) -> bool;
    /// What tells the device that a file is on from others.
    fn device(&self, path: &Path) -> io::Result<u64>;
    /// Opens a file to append to and reads it, if it has at most so many bytes and nothing of that
    /// has to wait.
    ///
    /// # Errors
    /// [`NotFound`](io::ErrorKind::NotFound) if it is known that there is none; others say nothing.
    fn open_cached(&self, path: &Path, most: usize) -> io::Result<(Arc<dyn DiskFile>, Vec<u8>)>;
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

    fn exists(&self, path: &Path) -> bool {
        rustix::fs::access(path, rustix::fs::Access::EXISTS).is_ok()
    }

    fn device(&self, path: &Path) -> io::Result<u64> {
        Ok(std::fs::metadata(path)?.dev())
    }

    #[cfg(target_os = "linux")]
    fn open_cached(&self, path: &Path, most: usize) -> io::Result<(Arc<dyn DiskFile>, Vec<u8>)> {
        use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
        use rustix::io::ReadWriteFlags;
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC;
        let file = rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::CACHED)?;
        let file = File::from(file);
        let len = rustix::fs::fstat(&file)?.st_size;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if len > most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut bytes = vec![0; len];
        let room = &mut [io::IoSliceMut::new(&mut bytes)];
        if rustix::io::preadv2(&file, room, 0, ReadWriteFlags::NOWAIT)? != len {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok((Arc::new(RealFile(file)), bytes))
    }

    #[cfg(not(target_os = "linux"))]
    fn open_cached(&self, _path: &Path, _most: usize) -> io::Result<(Arc<dyn DiskFile>, Vec<u8>)> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn is_shared(&self) -> bool {
        true
    }
}

/// The attribute that holds the tag of a file.
#[cfg(target_os = "linux")]
const TAG: &str = "user.harness";

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

    fn start_sync(&self) {
        // Who says that a part of a page is of no more use has the page written, and keeps it. Of a
        // longer part, whole pages would be dropped.
        #[cfg(target_os = "linux")]
        let _ = rustix::fs::fadvise(
            &self.0,
            0,
            std::num::NonZeroU64::new(1),
            rustix::fs::Advice::DontNeed,
        );
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    #[cfg(target_os = "linux")]
    fn tag(&self) -> Option<Vec<u8>> {
        let mut bytes = [0; 128];
        let len = rustix::fs::fgetxattr(&self.0, TAG, &mut bytes).ok()?;
        bytes.get(..len).map(<[u8]>::to_vec)
    }

    #[cfg(target_os = "linux")]
    fn set_tag(&self, tag: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::fsetxattr(&self.0, TAG, tag, rustix::fs::XattrFlags::empty())?)
    }

    #[cfg(target_os = "linux")]
    fn drop_tag(&self) {
        // Mostly there is none.
        let _ = rustix::fs::fremovexattr(&self.0, TAG);
    }

    #[cfg(not(target_os = "linux"))]
    fn tag(&self) -> Option<Vec<u8>> {
        None
    }

    #[cfg(not(target_os = "linux"))]
    fn set_tag(&self, _tag: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[cfg(not(target_os = "linux"))]
    fn drop_tag(&self) {}

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

    fn unlock(&self) {
        // Closing the file unlocks it if this should fail.
        let _ = self.0.unlock();
    }

    fn lock_byte(&self, at: u64) -> io::Result<bool> {
        locks::set(&self.0, at)
    }

    fn is_byte_locked(&self, at: u64) -> io::Result<bool> {
        locks::is_set(&self.0, at)
    }

    fn unlock_byte(&self, at: u64) {
        // Closing the file unlocks it if this should fail.
        let _ = locks::unset(&self.0, at);
    }
}
