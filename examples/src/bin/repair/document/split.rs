//! Where a script is split.

use std::ops::Range;

use ruff_python_parser::{Mode, ParseOptions, parse_module, parse_unchecked};
use ruff_text_size::Ranged as _;

/// How many pieces of a script that does not parse may belong together.
const JOINED: usize = 24;

/// The parts of a script, which cover it: each ends before the line that begins the next one.
pub(super) fn parts(text: &str) -> Vec<Range<usize>> {
    // Such an import changes how all of the file is compiled.
    let starts = match parse_module(text) {
        _ if text.contains("from __future__") => Vec::new(),
        Ok(parsed) => {
            let ranges = parsed.syntax().body.iter().map(|statement| statement.range());
            let ranges: Vec<_> =
                ranges.map(|at| at.start().to_usize()..at.end().to_usize()).collect();
            between(text, &ranges)
        }
        Err(_) => joined(text, &pieces(text)),
    };
    ranges(text, &starts)
}

fn ranges(text: &str, starts: &[usize]) -> Vec<Range<usize>> {
    let from = std::iter::once(0).chain(starts.iter().copied());
    let to = starts.iter().copied().chain([text.len()]);
    from.zip(to).filter(|(from, to)| from < to).map(|(from, to)| from..to).collect()
}

/// Where the lines begin that come after blank lines between two statements.
fn between(text: &str, statements: &[Range<usize>]) -> Vec<usize> {
    let pairs = statements.windows(2);
    pairs.filter_map(|pair| after_blank(text, pair[0].end, pair[1].start)).collect()
}

/// The start of the first line after a blank one, in this range.
fn after_blank(text: &str, from: usize, to: usize) -> Option<usize> {
    let mut at = from;
    let mut was_blank = false;
    for (number, line) in text[from..to].split_inclusive('\n').enumerate() {
        let is_blank = line.trim().is_empty();
        // The first one is the rest of the statement's own line.
        if number > 0 && was_blank && !is_blank {
            return Some(at);
        }
        was_blank = number > 0 && is_blank;
        at += line.len();
    }
    was_blank.then_some(to)
}

/// Where the lines begin that may begin a part of a script that does not parse: not indented, after a
/// blank one, and no continuation of a statement.
fn pieces(text: &str) -> Vec<usize> {
    let (mut starts, mut at, mut was_blank) = (Vec::new(), 0, false);
    for line in text.split_inclusive('\n') {
        let word =
            line.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        let continues = line.starts_with([' ', '\t', ')', ']', '}'])
            || ["else", "elif", "except", "finally"].contains(&word);
        let is_blank = line.trim().is_empty();
        if was_blank && !is_blank && !continues {
            starts.push(at);
        }
        was_blank = is_blank;
        at += line.len();
    }
    starts
}

/// Those of the starts at which the text before parses. A piece that parses with none of the next ones
/// is a part by itself: it has the mistake.
fn joined(text: &str, starts: &[usize]) -> Vec<usize> {
    let pieces = ranges(text, starts);
    let parses =
        |text: &str| !parse_unchecked(text, ParseOptions::from(Mode::Module)).has_invalid_syntax();
    let (mut found, mut first) = (Vec::new(), 0);
    while first < pieces.len() {
        let begin = pieces[first].start;
        let mut ends = pieces[first..].iter().take(JOINED).map(|piece| piece.end);
        let count = ends.position(|end| parses(&text[begin..end])).map_or(1, |at| at + 1);
        first += count;
        found.push(pieces[first - 1].end);
    }
    found.pop();
    found
}

#[cfg(test)]
mod tests {
    use super::parts;

    fn split(text: &str) -> Vec<&str> {
        parts(text).into_iter().map(|part| &text[part]).collect()
    }

    #[test]
    fn blank_lines_between_statements_split() {
        assert_eq!(
            split("import os\nx = 1\n\n# f\n\n# more\ndef f():\n    a\n\n    b\n\nf()\n"),
            ["import os\nx = 1\n\n", "# f\n\n# more\ndef f():\n    a\n\n    b\n\n", "f()\n"]
        );
        assert_eq!(split("a = '''\n\nb\n\n'''\n\nc\n"), ["a = '''\n\nb\n\n'''\n\n", "c\n"]);
        assert_eq!(split("from __future__ import annotations\n\nx = 1\n").len(), 1);
    }

    #[test]
    fn a_mistake_stays_in_its_part() {
        let text = "x = 1\n\nprint((x)\n\ny = '''\n\n'''\n\nprint(y)\n";
        assert_eq!(split(text), ["x = 1\n\n", "print((x)\n\n", "y = '''\n\n'''\n\n", "print(y)\n"]);
    }
}
