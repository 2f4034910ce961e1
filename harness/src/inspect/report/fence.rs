//! Text that Markdown shows as it is.

use std::fmt::Write as _;

use super::lines::clipped;
use super::words::visible;

/// The most characters in a code span.
const MAX_SPAN: usize = 400;

/// A block whose fence is longer than any in the text.
pub(super) fn fenced(out: &mut String, language: &str, text: &str) -> std::fmt::Result {
    let text = visible(text);
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    writeln!(out, "{fence}{language}\n{text}\n{fence}\n")
}

/// A code span: on one line, and also whole in a table, where a bar would end the cell.
pub(super) fn span(text: &str) -> String {
    let text = clipped(text, MAX_SPAN).replace(['\n', '\t'], " ");
    let text = visible(&text).replace('|', "\u{2502}");
    let fence = "`".repeat(longest_run(&text) + 1);
    let pad =
        if text.starts_with('`') || text.ends_with('`') || text.is_empty() { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}
