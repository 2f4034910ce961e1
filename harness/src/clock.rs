//! Time as it is written down: UTC milliseconds, informational, never used to order anything.

use std::fmt;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01 00:00:00 UTC.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct UtcMillis(pub u64);

impl UtcMillis {
    /// The machine's time now; 0 on a machine whose clock stands before 1970.
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// The moment so much later.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(wait))
    }

    /// This moment as a [`SystemTime`].
    pub fn to_system_time(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.0)
    }
}

static BOOT: LazyLock<boot_time::Instant> = LazyLock::new(boot_time::Instant::now);

/// Milliseconds since this was first asked, by a clock that nobody sets and that goes on while the
/// machine is suspended.
pub(crate) fn boot_millis() -> u64 {
    u64::try_from(BOOT.elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl From<SystemTime> for UtcMillis {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for UtcMillis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_are_zero() {
        assert_eq!(UtcMillis::from(UNIX_EPOCH - Duration::from_secs(1)), UtcMillis(0));
        assert_eq!(UtcMillis::from(UtcMillis(1500).to_system_time()), UtcMillis(1500));
    }
}
