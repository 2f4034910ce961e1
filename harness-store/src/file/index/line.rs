//! Distinguishes whole records from torn and damaged ones.

use super::Flaw;
use crate::file::record;

pub(super) enum Line<'a> {
    Sound(&'a [u8]),
    /// A record of which only a part was written.
    Torn,
    /// Something that was written and never reached the disk.
    Gap,
}

/// The next line and the bytes it takes, at a place where a record begins. `None` if it is not
/// complete yet.
pub(super) fn next_line(bytes: &[u8]) -> Result<Option<(usize, Line<'_>)>, Flaw> {
    let start = usize::from(bytes.first() == Some(&b'\n'));
    let Some(end) = bytes[start..].iter().position(|byte| *byte == b'\n') else {
        let line = &bytes[start..];
        if start == 1 && ends_badly(line) {
            return Err(damaged());
        }
        return Ok(None);
    };
    let end = start + end;
    let line = &bytes[start..end];
    let next = bytes.get(end + 1);
    if start == 1 && record::is_sound(line) {
        // A record that lacks nothing but its last byte shares the newline of its successor.
        let own = next.is_none_or(|next| *next == b'\n' || *next == 0);
        return Ok(Some((if own { end + 1 } else { end }, Line::Sound(line))));
    }
    // One whose last byte never reached the disk, and has left a zero: the newline is the successor's.
    if start == 1
        && let Some(line) = line.strip_suffix(b"\0")
        && record::is_sound(line)
    {
        return Ok(Some((end, Line::Sound(line))));
    }
    if line.windows(2).any(|pair| pair == [0, 0]) {
        let own = next.is_none_or(|next| *next == b'\n' || *next == 0);
        return Ok(Some((if own { end + 1 } else { end }, Line::Gap)));
    }
    if start == 1 && line.is_empty() {
        return Ok(Some((1, Line::Torn)));
    }
    if start == 0 || next.is_none_or(|next| *next == b'\n') || ends_badly(line) {
        return Err(damaged());
    }
    Ok(Some((end, Line::Torn)))
}

/// Whether a line was complete, but for a newline that became another byte. A zero in its place is
/// what is left where the end of a record never reached the disk.
fn ends_badly(line: &[u8]) -> bool {
    line.split_last().is_some_and(|(last, line)| *last != 0 && record::is_sound(line))
}

fn damaged() -> Flaw {
    Flaw::Damaged("a record does not match its checksum".into())
}
