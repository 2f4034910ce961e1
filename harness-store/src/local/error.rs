//! Failures of the disk, as the caller of a store understands them, and places that no store uses.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use harness::store::StoreError;

use super::disk::is_own;

/// What it means that nothing was written because of `error`.
pub(crate) fn failed(what: &str, path: &Path, error: io::Error) -> StoreError {
    let place = path.display();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            StoreError::Full(format!(
                "failed to {what} `{place}`: {error} (make room and try again)"
            ))
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            StoreError::Unsuitable(format!(
                "failed to {what} `{place}`: {error} (let this user write there)"
            ))
        }
        _ if error.kind() == io::ErrorKind::InvalidInput
            || error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) =>
        {
            StoreError::Unsuitable(format!(
                "failed to {what} `{place}`: {error} (find out who put it there, and remove it)"
            ))
        }
        _ => StoreError::unavailable(format!("failed to {what} `{place}`"), error),
    }
}

/// Refuses a directory in which another user may put files of its own.
pub(crate) fn refuse_foreign(dir: &Path, followed: bool) -> Result<(), StoreError> {
    let found = if followed { std::fs::metadata(dir) } else { std::fs::symlink_metadata(dir) };
    let found = found.map_err(|error| failed("look at", dir, error))?;
    let wrong = if !found.is_dir() {
        "it is not a directory"
    } else if !is_own(&found) {
        "it belongs to another user"
    } else if found.mode() & 0o002 != 0 {
        "every user may write there"
    } else {
        return Ok(());
    };
    Err(StoreError::Unsuitable(format!(
        "failed to use `{}` as a store: {wrong} (choose a directory that only this user writes to)",
        dir.display()
    )))
}

/// A failure after which the contents of the disk are unknown.
pub(crate) fn unsure(what: String, error: Option<io::Error>) -> StoreError {
    StoreError::Unavailable { what, ambiguous: true, source: error.map(Into::into) }
}

/// Refuses a directory whose file system keeps the promises of this store on one machine only, or
/// on none: appends of two machines overwrite each other there.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn refuse_network(dir: &Path) -> Result<(), StoreError> {
    const NETWORK: [(u32, &str); 11] = [
        (0x6969, "NFS"),
        (0x517b, "SMB"),
        (0xff53_4d42, "CIFS"),
        (0xfe53_4d42, "SMB 2"),
        (0x5346_414f, "AFS"),
        (0x6b41_4653, "AFS"),
        (0x7375_7245, "Coda"),
        (0x00c3_6400, "Ceph"),
        (0x0bd0_0bd0, "Lustre"),
        (0x0116_1970, "GFS2"),
        (0x7461_636f, "OCFS2"),
    ];
    let found = rustix::fs::statfs(dir)
        .map_err(|error| failed("look at the file system of", dir, error.into()))?;
    // The kernel's numbers have 32 bits, whatever the type in which they come.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::unnecessary_cast)]
    let kind = found.f_type as u32;
    let network = NETWORK.iter().find(|(magic, _)| *magic == kind).map(|(_, name)| *name);
    if let Some(name) = network.or_else(|| network_fuse(kind, dir)) {
        return Err(StoreError::Unsuitable(format!(
            "`{}` is on a network file system ({name}), which does not keep appends of several \
             machines apart (use a directory on a local disk, or a store with a server)",
            dir.display()
        )));
    }
    Ok(())
}

/// A network file system that a process serves. These share one number with local ones, and only
/// the table of mounts distinguishes them.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn network_fuse(kind: u32, dir: &Path) -> Option<&'static str> {
    const FUSE: u32 = 0x6573_5546;
    const NAMES: [&str; 6] = [
        "fuse.sshfs",
        "fuse.glusterfs",
        "fuse.s3fs",
        "fuse.gcsfuse",
        "fuse.rclone",
        "fuse.juicefs",
    ];
    if kind != FUSE {
        return None;
    }
    let dir = dir.canonicalize().ok()?;
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    let kind = mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            let place = words.next()?.replace("\\040", " ");
            dir.starts_with(&place).then_some((place.len(), words.next()?))
        })
        .max_by_key(|(length, _)| *length)?
        .1;
    NAMES.into_iter().find(|name| *name == kind)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn refuse_network(_dir: &Path) -> Result<(), StoreError> {
    Ok(())
}
