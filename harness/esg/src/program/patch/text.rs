//! Sources as lines, and edits that leave every other byte as it is.
use std::ops::Range;

use crate::program::refusal::Refusal;

/// Lines to put in the place of others.
#[derive(Debug)]
pub(super) struct Splice {
    /// The edit of the step, or the hunk of its diff, from 1.
    pub(super) edit: usize,
    /// The replaced lines, from 0.
    pub(super) at: Range<usize>,
    pub(super) lines: Vec<String>,
    /// Whether the source then ends with a line end, if the edit says so.
    pub(super) ends: Option<bool>,
}

/// A source in lines. A carriage return is a part of its line.
#[derive(Debug)]
pub(super) struct Text<'a> {
    pub(super) lines: Vec<&'a str>,
    /// Whether the last line ends.
    ends: bool,
}

impl<'a> Text<'a> {
    pub(super) fn of(source: &'a str) -> Self {
        let mut lines: Vec<_> = source.split('\n').collect();
        let ends = lines.last().is_some_and(|last| last.is_empty());
        if ends {
            lines.pop();
        }
        Self { lines, ends: ends && !source.is_empty() }
    }

    /// Whether its lines end with a carriage return, as those before or at `at` do.
    pub(super) fn returns(&self, at: usize) -> bool {
        let at = at.min(self.lines.len().saturating_sub(1));
        // The last line may not end.
        let line = if at + 1 == self.lines.len() { at.saturating_sub(1) } else { at };
        self.lines.get(line).is_some_and(|line| line.ends_with('\r'))
    }

    /// The source with other lines in these places.
    pub(super) fn spliced(&self, step: &str, mut splices: Vec<Splice>) -> Result<String, Refusal> {
        // At one place, what is inserted comes before what is replaced.
        splices.sort_by_key(|splice| (splice.at.start, splice.at.end));
        for pair in splices.windows(2) {
            let [first, second] = pair else { continue };
            let meet = second.at.start < first.at.end;
            let twice = first.at.is_empty() && second.at == first.at;
            if meet || twice {
                return Err(Refusal::Overlap {
                    step: step.to_owned(),
                    edits: (first.edit, second.edit),
                    line: second.at.start + 1,
                });
            }
        }
        let mut ends = self.ends || self.lines.is_empty();
        let mut lines: Vec<&str> = Vec::with_capacity(self.lines.len() + splices.len());
        let mut done = 0;
        for splice in &splices {
            lines.extend(&self.lines[done..splice.at.start]);
            lines.extend(splice.lines.iter().map(|line| &**line));
            done = splice.at.end;
            ends = splice.ends.unwrap_or(ends);
        }
        lines.extend(&self.lines[done..]);
        let mut new = lines.join("\n");
        if ends && !lines.is_empty() {
            new.push('\n');
        }
        Ok(new)
    }
}

/// A text without the fence that models write around code.
pub(super) fn unfenced(text: &str) -> &str {
    let body = text.trim_start_matches(['\n', '\r']);
    let Some(rest) = body.strip_prefix("```") else { return text };
    let Some((_, inner)) = rest.split_once('\n') else { return text };
    match inner.trim_end().strip_suffix("```") {
        Some(code) if code.is_empty() || code.ends_with('\n') => code,
        _ => text,
    }
}
