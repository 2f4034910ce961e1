//! Lines of a source, and edits which leave every other byte alone.

use std::ops::Range;

/// Where the lines of a source are. Line numbers count from 1, as in
/// tracebacks; a line that is not there is empty.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    source: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn of(source: &'a str) -> Self {
        let mut starts = vec![0];
        starts.extend(source.match_indices('\n').map(|(at, _)| at + 1));
        if starts.last() == Some(&source.len()) && !source.is_empty() {
            starts.pop();
        }
        Lines { source, starts }
    }

    pub(super) fn count(&self) -> usize {
        self.starts.len()
    }

    /// The line a byte is on.
    pub(super) fn at(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start <= byte)
    }

    /// Where a line starts; the end of the source when it has no such line.
    pub(super) fn start(&self, line: usize) -> usize {
        match line.checked_sub(1) {
            Some(index) => self.starts.get(index).copied().unwrap_or(self.source.len()),
            None => 0,
        }
    }

    /// A line without its end.
    pub(super) fn span(&self, line: usize) -> Range<usize> {
        if line == 0 {
            return 0..0;
        }
        let (start, next) = (self.start(line), self.start(line.saturating_add(1)));
        let text = &self.source[start..next];
        let text = text.strip_suffix('\n').unwrap_or(text);
        start..start + text.strip_suffix('\r').unwrap_or(text).len()
    }

    pub(super) fn text(&self, line: usize) -> &'a str {
        &self.source[self.span(line)]
    }

    /// The white space a line starts with.
    pub(super) fn indent(&self, line: usize) -> &'a str {
        indent(self.text(line))
    }

    /// The byte at a column, if that is a place between two characters.
    pub(super) fn byte(&self, line: usize, column: usize) -> Option<usize> {
        let span = self.span(line);
        let at = span.start.checked_add(column)?;
        (line > 0 && at <= span.end && self.source.is_char_boundary(at)).then_some(at)
    }
}

/// The white space a text starts with.
pub(super) fn indent(text: &str) -> &str {
    &text[..text.len() - text.trim_start_matches([' ', '\t', '\x0c']).len()]
}

/// How far an indentation reaches, with tabs to the next eighth column as
/// Python counts them.
pub(super) fn width(indent: &str) -> usize {
    indent.chars().fold(0, |at, c| if c == '\t' { (at / 8 + 1) * 8 } else { at + 1 })
}

/// The line ending this source uses.
pub(super) fn line_end(source: &str) -> &'static str {
    match source.find('\n') {
        Some(at) if at > 0 && source.as_bytes()[at - 1] == b'\r' => "\r\n",
        _ => "\n",
    }
}

/// Replaces ranges of a source. Ranges which overlap an earlier one are left
/// out.
pub(super) fn splice(source: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let mut result = String::with_capacity(source.len() + 32);
    let mut done = 0;
    for (range, new) in edits {
        if range.start < done || range.end > source.len() {
            continue;
        }
        result.push_str(&source[done..range.start]);
        result.push_str(&new);
        done = range.end;
    }
    result.push_str(&source[done..]);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_leave_their_ends_out() {
        let lines = Lines::of("a\r\n\tb\n\nlast");
        assert_eq!(lines.count(), 4);
        assert_eq!((lines.text(1), lines.text(2), lines.text(3)), ("a", "\tb", ""));
        assert_eq!((lines.text(4), lines.text(5), lines.text(0)), ("last", "", ""));
        assert_eq!(lines.indent(2), "\t");
        assert_eq!((lines.at(0), lines.at(3), lines.at(7)), (1, 2, 4));
        assert_eq!(Lines::of("a\n").count(), 1);
        assert_eq!(Lines::of("").text(1), "");
        assert_eq!(Lines::of("é").byte(1, 1), None);
    }

    #[test]
    fn splices_from_left_to_right() {
        let edits = vec![(4..5, "X".into()), (0..1, "YY".into()), (0..3, "no".into())];
        assert_eq!(splice("abcdef", edits), "YYbcdXf");
    }
}
