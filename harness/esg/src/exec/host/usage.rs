//! What a process uses, as far as the system reports it.
use std::fs;
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
mod tests {
    use super::{LARGE, is_victim};

    #[test]
    fn a_small_process_is_not_what_the_oom_killer_killed() {
        assert!(is_victim(Some(3), Some(4), Some(LARGE)));
        assert!(is_victim(Some(3), Some(4), None));
        assert!(!is_victim(Some(3), Some(4), Some(20 << 20)));
        assert!(!is_victim(Some(3), Some(3), Some(LARGE)));
        assert!(!is_victim(None, Some(3), Some(LARGE)));
    }
}
