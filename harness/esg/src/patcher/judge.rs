//! Whether a proposal repairs the failure or hides it, and whether it helped.
//!
//! The easiest way to hide a failure is to remove the failing statement. So a repair may change the
//! failing statement, but must keep most of it, must still run it, and may add only imports.

use std::ops::Range;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use crate::diagnosis::Fault;

use super::lex::{Kind, Lexed, lex};
use super::lines::Lines;
use super::rules::KEYWORDS;

/// Words a repair may not add: they skip, hide or leave the failing statement.
const GUARDS: [&str; 24] = [
    "try",
    "except",
    "finally",
    "suppress",
    "excepthook",
    "pass",
    "return",
    "break",
    "continue",
    "exit",
    "quit",
    "_exit",
    "abort",
    "kill",
    "SystemExit",
    "def",
    "class",
    "lambda",
    "exec",
    "eval",
    "if",
    "while",
    "for",
    "assert",
];

/// Why a repair is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum Evasion {
    /// Nothing of the program is different.
    #[error("it changes nothing that runs")]
    Unchanged,
    /// The failing statement became a comment.
    #[error("it comments out line {line} instead of repairing it")]
    CommentedOut {
        /// The line.
        line: usize,
    },
    /// The failing statement is gone, or little of it is left.
    #[error("it takes away what fails on line {line} instead of repairing it")]
    Removed {
        /// The line.
        line: usize,
    },
    /// Something new hides or skips the failure.
    #[error("it adds `{word}`, which hides the failure instead of repairing it")]
    Guarded {
        /// What was added.
        word: String,
    },
    /// The program has fewer statements than before.
    #[error("it leaves {after} of {before} lines of code")]
    Shrunk {
        /// Lines of code before.
        before: usize,
        /// And after.
        after: usize,
    },
    /// The program has new statements that are no imports.
    #[error("it adds statements of its own")]
    Grown,
}

/// Checks that `fixed` repairs `original`, which failed with `fault`, rather
/// than hiding the failure.
pub fn judge(original: &str, fixed: &str, fault: &Fault) -> Result<(), Evasion> {
    let (before, after) = (Program::read(original), Program::read(fixed));
    if before.tokens == after.tokens && before.indents == after.indents {
        return Err(Evasion::Unchanged);
    }
    let line = fault.line();
    let failing = before.on_line(line);
    if fault.facts.syntax.is_some() && before.open_string() && only_quotes(original, fixed) {
        // Text becomes code and the reverse, which looks like a large change.
        return Ok(());
    }
    if fault.facts.syntax.is_some() && before.one_keyword(&after) {
        return Ok(());
    }
    let text = before.line_text(line);
    if !failing.is_empty() && after.comments(text) > before.comments(text) {
        return Err(Evasion::CommentedOut { line });
    }
    for word in GUARDS {
        if after.count(word) > before.count(word) {
            return Err(Evasion::Guarded { word: word.to_owned() });
        }
    }
    if let Some(word) = after.never(&before) {
        return Err(Evasion::Guarded { word });
    }
    let (lines, left) = (before.indents.len(), after.indents.len());
    // Joining lines keeps all tokens, which is no loss.
    if left < lines && after.tokens.len() < before.tokens.len() {
        return Err(Evasion::Shrunk { before: lines, after: left });
    }
    if before.kept(&after, &failing) * 2 < failing.len() && !before.respelt(&after, &failing) {
        return Err(Evasion::Removed { line });
    }
    let imports = after.harmless().saturating_sub(before.harmless());
    if left > lines + imports || after.count(";") > before.count(";") {
        return Err(Evasion::Grown);
    }
    Ok(())
}

/// Whether two sources differ in nothing but a string's end: quotes and the
/// backslash before one.
fn only_quotes(original: &str, fixed: &str) -> bool {
    let edit = |from: &str, to: &str| {
        let (from, to) = (from.as_bytes(), to.as_bytes());
        let head = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        let (from, to) = (&from[head..], &to[head..]);
        let tail = from.iter().rev().zip(to.iter().rev()).take_while(|(a, b)| a == b).count();
        from[..from.len() - tail].to_vec()
    };
    let (lost, new) = (edit(original, fixed), edit(fixed, original));
    let quotes = |bytes: &[u8]| bytes.iter().all(|byte| b"'\"\\".contains(byte));
    lost.len() <= 1 && quotes(&lost) && new.len() <= 3 && quotes(&new)
}

/// What of a source runs: its tokens without comments, and the indentation of
/// each line with code.
struct Program<'a> {
    lexed: Lexed<'a>,
    lines: Lines<'a>,
    tokens: Vec<&'a str>,
    spans: Vec<Range<usize>>,
    indents: Vec<&'a str>,
}

impl<'a> Program<'a> {
    fn read(source: &'a str) -> Self {
        let (lexed, lines) = (lex(source), Lines::of(source));
        let code = lexed
            .tokens
            .iter()
            .filter(|t| !t.nested && !matches!(t.kind, Kind::Comment | Kind::End));
        let spans: Vec<Range<usize>> = code.map(|token| token.span.clone()).collect();
        let tokens = spans.iter().map(|span| &source[span.clone()]).collect();
        let mut numbers: Vec<usize> = spans.iter().map(|span| lines.at(span.start)).collect();
        numbers.dedup();
        let indents = numbers.iter().map(|n| lines.indent(*n)).collect();
        Program { lexed, lines, tokens, spans, indents }
    }

    /// Whether a word that is nearly one of the language became that one, and nothing else is different.
    fn one_keyword(&self, after: &Program<'_>) -> bool {
        if self.tokens.len() != after.tokens.len() || self.indents != after.indents {
            return false;
        }
        let mut pairs = self.tokens.iter().zip(&after.tokens).filter(|(old, new)| old != new);
        let (Some((old, new)), None) = (pairs.next(), pairs.next()) else { return false };
        let is_word = old.chars().all(|one| one == '_' || one.is_alphanumeric());
        is_word
            && KEYWORDS.contains(new)
            && strsim::damerau_levenshtein(old, new) <= 2
            && old.len() > 1
    }

    fn line_text(&self, line: usize) -> &'a str {
        self.lines.text(line).trim()
    }

    fn open_string(&self) -> bool {
        !self.lexed.open_strings.is_empty()
    }

    /// The tokens which start on a line.
    fn on_line(&self, line: usize) -> Range<usize> {
        let at = |span: &Range<usize>| self.lines.at(span.start);
        let start = self.spans.partition_point(|span| at(span) < line);
        start..self.spans.partition_point(|span| at(span) <= line)
    }

    /// How many comments contain a text.
    fn comments(&self, text: &str) -> usize {
        let comments = self.lexed.tokens.iter().filter(|token| token.kind == Kind::Comment);
        comments.filter(|token| self.lexed.text(token).contains(text)).count()
    }

    fn count(&self, word: &str) -> usize {
        self.tokens.iter().filter(|token| **token == word).count()
    }

    /// A condition, new in this program, that never holds.
    fn never(&self, before: &Program<'_>) -> Option<String> {
        let conditions = |program: &Program<'_>| -> Vec<String> {
            let words = program.tokens.windows(2);
            words
                .filter(|pair| matches!(pair[0], "if" | "elif" | "while" | "and"))
                .filter(|pair| matches!(pair[1], "False" | "None" | "0" | "\"\"" | "''"))
                .map(|pair| pair.join(" "))
                .collect()
        };
        let (now, then) = (conditions(self), conditions(before));
        if now.len() > then.len() { now.into_iter().next_back() } else { None }
    }

    /// How many of some tokens are still there, in their order.
    fn kept(&self, after: &Program<'_>, failing: &Range<usize>) -> usize {
        // A repair differs in little. A source that differs in much is refused anyway, so a rough
        // comparison is enough.
        let until = Some(Instant::now() + Duration::from_secs(1));
        let (old, new) = (&self.tokens, &after.tokens);
        let ops = capture_diff_slices_deadline(Algorithm::Myers, old, new, until);
        let equal = ops.iter().filter_map(|op| match op {
            DiffOp::Equal { old_index, len, .. } => Some(*old_index..old_index + len),
            _ => None,
        });
        equal.map(|run| run.end.min(failing.end).saturating_sub(run.start.max(failing.start))).sum()
    }

    /// Whether very few tokens were replaced by as many that look like them.
    fn respelt(&self, after: &Program<'_>, failing: &Range<usize>) -> bool {
        let new = after.tokens.get(failing.clone()).unwrap_or_default();
        let old = self.tokens.get(failing.clone()).unwrap_or_default();
        let like =
            |(a, b): (&&str, &&str)| a == b || strsim::normalized_damerau_levenshtein(a, b) >= 0.4;
        self.tokens.len() == after.tokens.len() && old.iter().zip(new).all(like)
    }

    /// The lines that a repair may add: imports, and brackets on their own.
    fn harmless(&self) -> usize {
        let numbers = 1..=self.lines.count();
        let texts = numbers.map(|line| self.lines.text(line).trim());
        texts
            .filter(|text| {
                text.starts_with("import ")
                    || (text.starts_with("from ") && text.contains(" import "))
                    || (!text.is_empty() && text.chars().all(|c| ")]},".contains(c)))
            })
            .count()
    }
}

#[cfg(test)]
mod tests;
