//! What a process uses, as far as the system reports it.
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Pid;

/// The memory of the smallest process that the OOM killer may have killed, in bytes. An idle worker
/// has a fifth of it.
const LARGE: u64 = 128 << 20;

/// CPU time has a resolution of a hundredth of a second.
const TICK: Duration = Duration::from_millis(10);

/// The CPU time of a process on all cores. `None` if the system does not report it.
pub(in crate::exec) fn cpu(pid: Pid) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The name, in parentheses, may contain anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let kernel: u32 = fields.next()?.parse().ok()?;
    Some(TICK * user.saturating_add(kernel))
}

/// The memory of a process in bytes. `None` if the system does not report it.
pub(in crate::exec) fn resident(pid: Pid) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

/// What is too much in a directory: more files, or files that take more bytes, or a part that cannot be
/// looked into. Links are not followed,
/// and what disappears meanwhile does not count.
pub(in crate::exec) fn excess(folder: &Path, bytes: u64, files: u64) -> Option<String> {
    let mut open: Vec<PathBuf> = vec![folder.to_owned()];
    let (mut taken, mut count) = (0, 0);
    while let Some(folder) = open.pop() {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return Some("a directory in scratch without the permission to list it".to_owned());
            }
            Err(_) => continue,
        };
        for entry in entries.flatten() {
            let Ok(found) = entry.metadata() else { continue };
            taken += found.blocks() * 512;
            count += 1;
            if taken > bytes {
                return Some(format!("more than {bytes} bytes in scratch"));
            }
            if count > files {
                return Some(format!("more than {files} files in scratch"));
            }
            if found.is_dir() {
                open.push(entry.path());
            }
        }
    }
    None
}

/// Whether a killed process may be the victim of the OOM killer: the killer was active meanwhile,
/// somewhere on the machine, and it prefers large processes.
pub(in crate::exec) fn is_victim(
    before: Option<u64>,
    after: Option<u64>,
    resident: Option<u64>,
) -> bool {
    let active = before.zip(after).is_some_and(|(before, after)| after > before);
    active && resident.is_none_or(|bytes| bytes >= LARGE)
}

/// How many processes the OOM killer has killed. `None` if the system does not report it.
pub(in crate::exec) fn starved() -> Option<u64> {
    let stat = fs::read_to_string("/proc/vmstat").ok()?;
    let line = stat.lines().find_map(|line| line.strip_prefix("oom_kill "))?;
    line.trim().parse().ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::{LARGE, excess, is_victim};

    #[test]
    fn files_and_their_bytes_are_counted_below_a_directory_and_not_behind_links() {
        let folder = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join("large"), vec![1; 1 << 20]).unwrap();
        fs::create_dir(folder.path().join("below")).unwrap();
        fs::write(folder.path().join("below/small"), vec![1; 10_000]).unwrap();
        symlink(other.path(), folder.path().join("link")).unwrap();
        let excess = |bytes, files| excess(folder.path(), bytes, files);
        assert_eq!(excess(1 << 20, 3), None);
        assert_eq!(excess(8_000, 3).as_deref(), Some("more than 8000 bytes in scratch"));
        assert_eq!(excess(1 << 20, 2).as_deref(), Some("more than 2 files in scratch"));
    }

    #[test]
    fn a_small_process_is_not_what_the_oom_killer_killed() {
        assert!(is_victim(Some(3), Some(4), Some(LARGE)));
        assert!(is_victim(Some(3), Some(4), None));
        assert!(!is_victim(Some(3), Some(4), Some(20 << 20)));
        assert!(!is_victim(Some(3), Some(3), Some(LARGE)));
        assert!(!is_victim(None, Some(3), Some(LARGE)));
    }
}
