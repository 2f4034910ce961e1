//! Differences between texts, line by line.

use similar::{ChangeTag, TextDiff};

/// The largest text that is compared line by line, in bytes.
const MAX_TEXT: usize = 64 << 10;
/// The most lines of a difference that are kept.
const MAX_LINES: usize = 60;
/// The most characters of a line that are kept.
const MAX_LINE: usize = 300;
/// How many lines that did not change stand around one that did.
const CONTEXT: usize = 2;

/// A line of a difference between two texts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiffLine {
    /// What became of the line.
    pub change: LineChange,
    /// The line.
    pub text: String,
}

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineChange {
    /// Both texts have it.
    Kept,
    /// Only the later text has it.
    Added,
    /// Only the earlier text has it.
    Removed,
    /// Lines are left out here.
    LeftOut,
}

/// The difference between two texts; none if they are too large, or have one line each.
pub(super) fn diff(before: &str, after: &str) -> Vec<DiffLine> {
    let large = before.len() > MAX_TEXT || after.len() > MAX_TEXT;
    if large || !(before.contains('\n') || after.contains('\n')) {
        return Vec::new();
    }
    let diff = TextDiff::from_lines(before, after);
    let mut lines = Vec::new();
    let left_out = || DiffLine { change: LineChange::LeftOut, text: String::new() };
    for (nth, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if nth > 0 {
            lines.push(left_out());
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            if lines.len() >= MAX_LINES {
                lines.push(left_out());
                return lines;
            }
            let text = change.value().trim_end_matches(['\n', '\r']);
            let change = match change.tag() {
                ChangeTag::Equal => LineChange::Kept,
                ChangeTag::Insert => LineChange::Added,
                ChangeTag::Delete => LineChange::Removed,
            };
            lines.push(DiffLine { change, text: clipped(text, MAX_LINE) });
        }
    }
    lines
}

/// The difference between two texts, also of those with one line.
pub(super) fn between(before: &str, after: &str) -> Vec<DiffLine> {
    let ended = |text: &str| format!("{}\n", text.trim_end_matches('\n'));
    diff(&ended(before), &ended(after))
}

/// The first characters of a text, with a mark if there are more.
pub(super) fn clipped(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
