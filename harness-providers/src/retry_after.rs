//! How long a provider asks to wait.

use reqwest::header::{HeaderMap, RETRY_AFTER};
use std::time::{Duration, SystemTime};

/// The wait of a `retry-after-ms` or `retry-after` header: seconds, or an HTTP date after `now`.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| *number >= 0.0);
    if let Some(millis) = text("retry-after-ms").and_then(number) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let wait = text(RETRY_AFTER.as_str())?;
    if let Some(seconds) = number(wait) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = httpdate::parse_http_date(wait).ok()?;
    Some(at.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(name: &'static str, value: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        retry_after(&headers, now)
    }

    #[test]
    fn seconds_dates_and_milliseconds() {
        assert_eq!(wait("retry-after", "3"), Some(Duration::from_secs(3)));
        assert_eq!(wait("retry-after", " 0.5 "), Some(Duration::from_millis(500)));
        assert_eq!(wait("retry-after-ms", "1500"), Some(Duration::from_millis(1500)));
        let date = "Sun, 06 Nov 1994 08:50:07 GMT";
        assert_eq!(wait("retry-after", date), Some(Duration::from_secs(30)));
        let past = "Sun, 06 Nov 1994 08:00:00 GMT";
        assert_eq!(wait("retry-after", past), Some(Duration::ZERO));
        for bad in ["soon", "-1", "inf", "NaN", "1e400", ""] {
            assert_eq!(wait("retry-after", bad), None, "{bad}");
        }
    }
}
