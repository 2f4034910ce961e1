//! Locks on single bytes of open files: `F_OFD_SETLK` of `fcntl(2)`.

pub(crate) use system::{is_set, set, unset};

/// Where a place in a file has 64 bits, as such locks need.
#[cfg(all(
    any(target_os = "linux", target_os = "android"),
    any(target_pointer_width = "64", target_env = "musl")
))]
mod system {
    use std::fs::File;
    use std::io;

    use nix::errno::Errno;
    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc;

    fn byte(at: u64, kind: libc::c_int) -> io::Result<libc::flock> {
        let place = |at: u64| at.try_into().map_err(|_| io::ErrorKind::Unsupported);
        Ok(libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: place(at)?,
            l_len: 1,
            l_pid: 0,
        })
    }

    pub(crate) fn set(file: &File, at: u64) -> io::Result<bool> {
        match fcntl(file, FcntlArg::F_OFD_SETLK(&byte(at, libc::F_WRLCK)?)) {
            Ok(_) => Ok(true),
            Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
            // A system, or a file system, that knows none.
            Err(Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP) => {
                Err(io::ErrorKind::Unsupported.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn is_set(file: &File, at: u64) -> io::Result<bool> {
        let mut found = byte(at, libc::F_WRLCK)?;
        fcntl(file, FcntlArg::F_OFD_GETLK(&mut found))?;
        Ok(libc::c_int::from(found.l_type) != libc::F_UNLCK)
    }

    pub(crate) fn unset(file: &File, at: u64) -> io::Result<()> {
        fcntl(file, FcntlArg::F_OFD_SETLK(&byte(at, libc::F_UNLCK)?))?;
        Ok(())
    }
}

#[cfg(not(all(
    any(target_os = "linux", target_os = "android"),
    any(target_pointer_width = "64", target_env = "musl")
)))]
mod system {
    use std::fs::File;
    use std::io;

    pub(crate) fn set(_file: &File, _at: u64) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn is_set(_file: &File, _at: u64) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn unset(_file: &File, _at: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
