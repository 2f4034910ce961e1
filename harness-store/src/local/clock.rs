//! The clock of leases: time since the machine started, which no person sets, and which boot that was.

use std::time::Duration;

use harness::UtcMillis;

/// Milliseconds since the machine started, counting those in which it was suspended.
pub(crate) fn boot_millis() -> u64 {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let millis = Duration::from_secs(now.tv_sec.unsigned_abs()).as_millis()
            + Duration::from_nanos(now.tv_nsec.unsigned_abs()).as_millis();
        u64::try_from(millis).unwrap_or(u64::MAX)
    }
    // Elsewhere the clock on the wall is the only one that all processes share and that runs
    // while the machine is suspended.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        UtcMillis::now().0
    }
}

/// When a lease ends that is held for `ttl` from now on.
pub(crate) fn deadline(ttl: Duration) -> u64 {
    boot_millis().saturating_add(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX))
}

/// A moment of the clock of leases by the clock on the wall.
pub(crate) fn on_the_wall(until: u64) -> UtcMillis {
    let left = i128::from(until) - i128::from(boot_millis());
    let left = i64::try_from(left).unwrap_or(i64::MAX);
    UtcMillis(UtcMillis::now().0.saturating_add_signed(left))
}

/// Identifies the current boot of this machine.
pub(crate) fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}
