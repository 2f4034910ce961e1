//! Makes every mount read-only, except for what may be written. Landlock does not cover the attributes
//! of files: modes, owners, times.
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};

const NONE: Option<&str> = None;

/// Makes all mounts of this namespace read-only, except for those of the directories `write`.
///
/// # Errors
/// If one of them stays as it was.
pub(super) fn fix(write: &[PathBuf]) -> super::Result<()> {
    let write: Vec<PathBuf> = write.iter().map(fs::canonicalize).collect::<Result<_, _>>()?;
    // Mounts of the host do not appear here, and these not there.
    mount(NONE, "/", NONE, MsFlags::MS_PRIVATE | MsFlags::MS_REC, NONE)?;
    let here = fs::canonicalize("/proc/self")?;
    for path in write.iter().chain([&here]) {
        // A mount of its own stays writable. It also keeps the kernel from forgetting which directory of
        // processes is this one's, which a rule of landlock refers to.
        mount(Some(path), path, NONE, MsFlags::MS_BIND, NONE)?;
    }
    let folder = std::env::current_dir();
    for (path, flags) in mounted(&fs::read("/proc/self/mountinfo")?) {
        let stays = write.iter().any(|writable| path.starts_with(writable));
        if !stays && path.exists() {
            let flags = flags | MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
            mount(NONE, &path, NONE, flags, NONE)?;
        }
    }
    // The working directory may be one that was mounted again.
    if let Ok(folder) = folder {
        std::env::set_current_dir(folder)?;
    }
    Ok(())
}

/// The mounts of a `mountinfo` with the flags that they must keep.
fn mounted(info: &[u8]) -> Vec<(PathBuf, MsFlags)> {
    let line = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b' ').skip(4);
        let path = unescaped(fields.next()?);
        let options = std::str::from_utf8(fields.next()?).ok()?;
        Some((path, flags(options)))
    };
    info.split(|byte| *byte == b'\n').filter_map(line).collect()
}

fn flags(options: &str) -> MsFlags {
    let flag = |option| match option {
        "nosuid" => MsFlags::MS_NOSUID,
        "nodev" => MsFlags::MS_NODEV,
        "noexec" => MsFlags::MS_NOEXEC,
        "noatime" => MsFlags::MS_NOATIME,
        "nodiratime" => MsFlags::MS_NODIRATIME,
        "relatime" => MsFlags::MS_RELATIME,
        _ => MsFlags::empty(),
    };
    options.split(',').map(flag).collect()
}

/// A path in which blanks and backslashes are written as `\040`.
fn unescaped(path: &[u8]) -> PathBuf {
    let (mut found, mut rest) = (Vec::with_capacity(path.len()), path);
    while let [first, after @ ..] = rest {
        let octal = after.get(..3).and_then(|code| std::str::from_utf8(code).ok());
        match octal.and_then(|code| u8::from_str_radix(code, 8).ok()).filter(|_| *first == b'\\') {
            Some(byte) => {
                found.push(byte);
                rest = &after[3..];
            }
            None => {
                found.push(*first);
                rest = after;
            }
        }
    }
    Path::new(&OsString::from_vec(found)).to_owned()
}

#[cfg(test)]
mod tests {
    use nix::mount::MsFlags;

    use super::mounted;

    #[test]
    fn mounts_are_read_with_their_flags() {
        let info = b"22 1 0:5 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
            23 22 0:6 /x /mnt/a\\040b\\134 rw,nosuid,nodev,noatime - tmpfs tmpfs rw,size=1k\n";
        let found = mounted(info);
        let more = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOATIME;
        assert_eq!(found, [("/".into(), MsFlags::MS_RELATIME), ("/mnt/a b\\".into(), more)]);
    }
}
