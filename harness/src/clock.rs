//! Timestamps: UTC milliseconds. They are informational and never define an order.

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
    /// The current system time. 0 if the system clock is before 1970.
    ///
    /// With the feature `testing` it passes as the time of the tokio runtime does, so that a test
    /// which pauses that also pauses what is measured by this clock, such as when a question expires.
    pub fn now() -> Self {
        #[cfg(feature = "testing")]
        return of_runtime();
        #[cfg(not(feature = "testing"))]
        SystemTime::now().into()
    }

    /// This time plus `wait`.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(wait))
    }

    /// This time as a [`SystemTime`].
    pub fn to_system_time(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.0)
    }

    /// This time in RFC 3339 format, in UTC: `2026-11-21T13:08:12.250Z`. `None` after the year
    /// 9999, which the format does not support.
    pub fn to_rfc3339(self) -> Option<String> {
        let (days, of_day) = (self.0 / DAY, self.0 % DAY);
        let (year, month, day) = date(days);
        if year > 9999 {
            return None;
        }
        let (seconds, millis) = (of_day / 1000, of_day % 1000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        Some(format!(
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"
        ))
    }

    /// Parses an RFC 3339 time with any offset, truncated to milliseconds. `None` for other text,
    /// for dates that do not exist, and for times before 1970.
    pub fn from_rfc3339(text: &str) -> Option<Self> {
        let (date_and_time, offset) = match text.strip_suffix(['Z', 'z']) {
            Some(rest) => (rest, 0),
            None => {
                let at = text.len().checked_sub(6)?;
                (text.get(..at)?, offset(text.get(at..)?)?)
            }
        };
        let (whole, fraction) = match date_and_time.split_once('.') {
            Some((whole, fraction)) => (whole, fraction),
            None => (date_and_time, "0"),
        };
        let shape = whole.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            10 => matches!(byte, b'T' | b't' | b' '),
            13 | 16 => byte == b':',
            _ => byte.is_ascii_digit(),
        });
        if whole.len() != 19 || !shape || fraction.is_empty() {
            return None;
        }
        let part = |from: usize, to: usize| whole.get(from..to)?.parse::<u64>().ok();
        let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
        let (hour, minute, second) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
        // 60 is a leap second. It is read as the start of the next minute, as in Unix time.
        if hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let millis: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
        let days = days_before(year, month, day)?;
        if date(days) != (year, month, day) {
            return None;
        }
        let local = days * DAY + ((hour * 60 + minute) * 60 + second) * 1000 + millis;
        i64::try_from(local).ok()?.checked_sub(offset)?.try_into().ok().map(Self)
    }
}

/// A day in milliseconds.
const DAY: u64 = 24 * 60 * 60 * 1000;

/// The days from 0000-03-01 to 1970-01-01. With years that start in March, the leap day is the last
/// day of the year, so one formula covers all months.
const EPOCH: u64 = 719_468;

/// The date, this many days after 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + EPOCH;
    // Four centuries have 146,097 days.
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

/// The inverse of [`date`]. `None` before 1970 and for dates that do not exist.
fn days_before(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (year, month) =
        if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    (era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year).checked_sub(EPOCH)
}

/// The milliseconds of an offset such as `+02:00`.
fn offset(text: &str) -> Option<i64> {
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let number = |text: &str| {
        let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>().ok().filter(|_| digits)
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60_000)
}

static BOOT: LazyLock<boot_time::Instant> = LazyLock::new(boot_time::Instant::now);

/// Milliseconds since the first call, by a clock that cannot be set and that keeps counting while
/// the machine is suspended.
pub(crate) fn boot_millis() -> u64 {
    u64::try_from(BOOT.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// The time of the runtime of the caller: that of the system, as long as no test has paused or
/// advanced it. It is computed from tokio's clock alone, so that two calls while that stands still
/// give the same time.
#[cfg(feature = "testing")]
fn of_runtime() -> UtcMillis {
    /// What the clock of the system and that of the runtime showed when this was first used.
    static FIRST: LazyLock<(SystemTime, std::time::Instant)> =
        LazyLock::new(|| (SystemTime::now(), std::time::Instant::now()));
    let (time, instant) = *FIRST;
    let now = tokio::time::Instant::now().into_std();
    // The clock of a runtime that was paused before that shows an earlier time.
    let shown = match now.checked_duration_since(instant) {
        Some(later) => time.checked_add(later),
        None => time.checked_sub(instant.duration_since(now)),
    };
    shown.unwrap_or(time).into()
}

impl From<SystemTime> for UtcMillis {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

/// The [RFC 3339](UtcMillis::to_rfc3339) form.
impl fmt::Display for UtcMillis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_rfc3339() {
            Some(time) => f.write_str(&time),
            None => write!(f, "{} ms after 1970", self.0),
        }
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

    #[test]
    fn rfc_3339_round_trips() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_123, "2000-02-29T00:00:00.123Z"),
            (1_795_266_492_250, "2026-11-21T13:08:12.250Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(UtcMillis(millis).to_rfc3339().unwrap(), text);
            assert_eq!(UtcMillis::from_rfc3339(text), Some(UtcMillis(millis)));
        }
        assert_eq!(UtcMillis(253_402_300_800_000).to_rfc3339(), None);
        assert_eq!(UtcMillis(u64::MAX).to_rfc3339(), None);
        let noon = UtcMillis::from_rfc3339("2026-11-21T12:00:00Z");
        assert!(noon.is_some());
        assert_eq!(UtcMillis::from_rfc3339("2026-11-21t14:00:00+02:00"), noon);
        assert_eq!(UtcMillis::from_rfc3339("2026-11-21 08:30:00.0009-03:30"), noon);
    }

    #[test]
    fn other_text_does_not_parse() {
        for text in [
            "",
            "Z",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+0200",
            "2026-01-01T00:00:00+24:00",
            "+026-01-01T00:00:00Z",
            "1970-01-01T00:00:00+00:01",
            "1969-12-31T23:59:59Z",
            "2026-01-01T00:00:0\u{660}Z",
        ] {
            assert_eq!(UtcMillis::from_rfc3339(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_time_round_trips(millis in 0..253_402_300_800_000_u64) {
            let text = UtcMillis(millis).to_rfc3339().unwrap();
            proptest::prop_assert_eq!(UtcMillis::from_rfc3339(&text), Some(UtcMillis(millis)));
        }
    }
}
