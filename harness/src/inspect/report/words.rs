//! Text as a page may show it: figures, times, names.

use std::borrow::Cow;
use std::time::Duration;

use crate::clock::UtcMillis;
use crate::llm::Spend;
use crate::store::Phase;
use crate::text::hidden;

/// A text with the characters written out that are invisible or change the direction of text. Line
/// breaks and tabs stay.
///
/// ```
/// use harness::inspect::report::visible;
///
/// assert_eq!(visible("a\u{202e}b\nc"), "a\\u{202e}b\nc");
/// ```
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    // Joiners are part of words of some languages, and of emoji.
    let written_out = |c: char| hidden(c) && !matches!(c, '\n' | '\t' | '\u{200c}' | '\u{200d}');
    if !text.contains(written_out) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match written_out(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// A number of things.
pub(super) fn many(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// A time in UTC, to the second.
pub(super) fn moment(at: UtcMillis) -> String {
    let text = at.to_string();
    text.split('.').next().unwrap_or(&text).replace('T', " ")
}

/// A duration for people.
pub(super) fn duration(time: Duration) -> String {
    let millis = time.as_millis();
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", millis / 60_000, millis / 1_000 % 60),
        _ => format!("{} h {} min", millis / 3_600_000, millis / 60_000 % 60),
    }
}

/// Tokens and cost; nothing if nothing was spent.
pub(super) fn spent(spend: &Spend) -> Option<String> {
    let tokens = spend.usage.total().map(|total| format!("{total} tokens"));
    let cost = spend
        .cost_micros
        .map(|micros| format!("${}.{:04}", micros / 1_000_000, micros % 1_000_000 / 100));
    match (tokens, cost) {
        (Some(tokens), Some(cost)) => Some(format!("{tokens}, {cost}")),
        (tokens, cost) => tokens.or(cost),
    }
}

/// The name of a phase.
pub(super) fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Running => "running",
        Phase::Interrupted => "interrupted",
        Phase::Waiting => "waiting",
        Phase::Ended => "ended",
        Phase::Stopped => "stopped",
        Phase::Exhausted => "exhausted",
        Phase::Failed => "failed",
    }
}
