//! Two sources side by side, for people.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use examples::shown;
use similar::{ChangeTag, TextDiff};

const CONTEXT: usize = 2;

/// Whether a diff has colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    /// Without any.
    Plain,
    /// With ANSI colours. Print it with `anstream`, which takes them away
    /// where they are not wanted.
    Coloured,
}

/// The first line that differs, from 1.
pub(crate) fn first_change(old: &str, new: &str) -> usize {
    old.lines().zip(new.lines()).take_while(|(old, new)| old == new).count() + 1
}

/// The unified diff of two sources, empty when they are the same. Control
/// characters are written out, as the diff is shown before it is approved.
pub(crate) fn unified(file: &str, old: &str, new: &str, paint: Paint) -> String {
    let diff = TextDiff::from_lines(old, new);
    let mut result = String::new();
    let mut line = |style: Style, text: &str| {
        let style = if paint == Paint::Plain { Style::new() } else { style };
        // Writing to a string does not fail.
        let _ = writeln!(result, "{style}{text}{style:#}");
    };
    let bold = Style::new().bold();
    let hunks: Vec<_> = diff
        .unified_diff()
        .context_radius(CONTEXT)
        .iter_hunks()
        .map(|hunk| {
            let changes: Vec<_> = hunk.iter_changes().collect();
            (hunk.header().to_string(), changes)
        })
        .collect();
    if !hunks.is_empty() {
        line(bold, &format!("--- {}", shown(file)));
        line(bold, &format!("+++ {} (repaired)", shown(file)));
    }
    for (header, changes) in hunks {
        line(AnsiColor::Cyan.on_default(), &header);
        for change in changes {
            let (sign, style) = match change.tag() {
                ChangeTag::Delete => ('-', AnsiColor::Red.on_default()),
                ChangeTag::Insert => ('+', AnsiColor::Green.on_default()),
                ChangeTag::Equal => (' ', Style::new()),
            };
            let text = change.value();
            let body = text.strip_suffix('\n').unwrap_or(text);
            let body = body.strip_suffix('\r').unwrap_or(body);
            line(style, &format!("{sign}{}", shown(body)));
            if change.missing_newline() {
                line(Style::new(), "\\ No newline at end of file");
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_two_lines_around_a_change() {
        let old = "1\n2\n3\n4\n5\n6\n7";
        let new = "1\n2\n3\nfour\n5\n6\n7";
        let plain = unified("a.py", old, new, Paint::Plain);
        assert_eq!(
            plain,
            "--- a.py\n+++ a.py (repaired)\n@@ -2,5 +2,5 @@\n 2\n 3\n-4\n+four\n 5\n 6\n"
        );
        let coloured = unified("a.py", old, new, Paint::Coloured);
        assert!(coloured.contains("\u{1b}[31m-4\u{1b}[0m\n"), "{coloured:?}");
        assert_eq!(unified("a.py", old, old, Paint::Coloured), "");
    }

    #[test]
    fn no_control_character_reaches_the_terminal() {
        let plain = unified("a\u{1b}.py", "x\r\n", "\u{1b}[2J\u{202e}\ty\r\n", Paint::Plain);
        assert!(!plain.contains(['\u{1b}', '\r', '\u{202e}']), "{plain:?}");
        assert!(plain.contains('\t'));
    }
}
