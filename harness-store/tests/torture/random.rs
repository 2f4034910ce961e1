//! Numbers that look random and come again from the same seed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub struct Random(u64);

impl Random {
    /// From `HARNESS_TORTURE_SEED`, or from the clock.
    pub fn seeded() -> (Self, u64) {
        let given = std::env::var("HARNESS_TORTURE_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| {
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_millis() as u64)
        });
        (Self(seed), seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub fn micros(&mut self, end: u64) -> Duration {
        Duration::from_micros(self.below(end))
    }
}
