//! Turns the edits of a step into the lines that each replaces.
use std::ops::Range;

use similar::{Algorithm, DiffTag, capture_diff_slices};

use super::EditKind;
use super::find::{self, Match, Miss, Rung};
use super::hunk::{self, Hunk, Sign};
use super::symbol;
use super::text::{Splice, Text, unfenced};
use crate::program::refusal::Refusal;
use crate::scan::Scan;

/// Locates one edit of `step` in its source.
pub(super) fn splices(
    step: &str,
    source: &str,
    text: &Text<'_>,
    scan: Option<&Scan>,
    edit: &EditKind,
    found: &mut Vec<Splice>,
) -> Result<(), Refusal> {
    let number = found.last().map_or(0, |last| last.edit) + 1;
    let malformed = |edit, why| Refusal::Malformed { step: step.to_owned(), edit, why };
    match edit {
        EditKind::SearchReplace { search, replace, line } => {
            if search.trim().is_empty() && !source.trim().is_empty() {
                let why = "it says nothing that is to be replaced (search for a line of the step)";
                return Err(malformed(number, why.into()));
            }
            let hunk = block(search, replace, *line);
            let placed = match find::lines(text, &hunk, &[Rung::Exact]) {
                Err(Miss::Nowhere) => match find::within(source, search, *line) {
                    Ok(bytes) => {
                        found.push(inner(source, bytes, replace, number));
                        return Ok(());
                    }
                    Err(Miss::Nowhere) => find::lines(text, &hunk, Rung::LENIENT),
                    Err(many) => Err(many),
                },
                placed => placed,
            };
            let place = placed.map_err(|miss| find::refusal(step, text, &hunk, number, miss))?;
            put(text, &hunk, &place, number, found);
        }
        EditKind::Unified { diff } => {
            let hunks = hunk::parse(diff)
                .map_err(|(hunk, why)| malformed(number + hunk.saturating_sub(1), why))?;
            for (number, hunk) in (number..).zip(&hunks) {
                if hunk.before().is_empty() && !source.trim().is_empty() {
                    let why = "it has no line of the step (add lines around the new ones)";
                    return Err(malformed(number, why.into()));
                }
                let place = find::lines(text, hunk, Rung::ALL)
                    .map_err(|miss| find::refusal(step, text, hunk, number, miss))?;
                put(text, hunk, &place, number, found);
            }
        }
        EditKind::Symbol { path, source: new } => {
            found.push(symbol::splice(step, source, text, scan, path, unfenced(new), number)?);
        }
        EditKind::Whole { source: new } => {
            // Beside other edits: it replaces every line, so the others overlap with it.
            let new = Text::of(unfenced(new));
            let lines = new.lines.iter().map(|line| (*line).to_owned()).collect();
            found.push(Splice { edit: number, at: 0..text.lines.len(), lines, ends: None });
        }
    }
    Ok(())
}

/// A search/replace block as a hunk. Lines that both have are kept as the step has them.
fn block<'a>(search: &'a str, replace: &'a str, line: Option<usize>) -> Hunk<'a> {
    let lines = |text: &'a str| -> Vec<&'a str> {
        match text {
            "" => Vec::new(),
            text => text.strip_suffix('\n').unwrap_or(text).split('\n').collect(),
        }
    };
    let (old, new) = (lines(search), lines(replace));
    let mut hunk = Hunk { line, ..Hunk::default() };
    for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
        if op.tag() == DiffTag::Equal {
            hunk.lines.extend(old[op.old_range()].iter().map(|line| (Sign::Keep, *line)));
        } else {
            hunk.lines.extend(old[op.old_range()].iter().map(|line| (Sign::Remove, *line)));
            hunk.lines.extend(new[op.new_range()].iter().map(|line| (Sign::Add, *line)));
        }
    }
    hunk
}

/// The lines around a part of a line that is replaced.
fn inner(source: &str, bytes: Range<usize>, replace: &str, edit: usize) -> Splice {
    let start = source[..bytes.start].rfind('\n').map_or(0, |end| end + 1);
    let end = source[bytes.end..].find('\n').map_or(source.len(), |length| bytes.end + length);
    let first = source[..start].matches('\n').count();
    let last = first + source[start..end].matches('\n').count();
    let new = [&source[start..bytes.start], replace, &source[bytes.end..end]].concat();
    let lines = |text: &str| text.split('\n').map(str::to_owned).collect();
    // The end of the last line is replaced too.
    if bytes.end == source.len() && source.ends_with('\n') {
        let lines = match new.as_str() {
            "" => Vec::new(),
            new => lines(new.strip_suffix('\n').unwrap_or(new)),
        };
        let ends = new.is_empty() || new.ends_with('\n');
        return Splice { edit, at: first..last, lines, ends: Some(ends) };
    }
    Splice { edit, at: first..last + 1, lines: lines(&new), ends: None }
}

/// The changes of a hunk at its place, without the lines that it keeps.
fn put(text: &Text<'_>, hunk: &Hunk<'_>, place: &Match<'_>, edit: usize, found: &mut Vec<Splice>) {
    let written =
        place.rung == Rung::Exact && hunk.lines.iter().any(|(_, line)| line.ends_with('\r'));
    let returns = text.returns(place.at);
    let adapted = |line: &str| {
        let mut line = place.shift.apply(line);
        if !written {
            line.truncate(line.trim_end_matches('\r').len());
            if returns {
                line.push('\r');
            }
        }
        line
    };
    let before = found.len();
    let mut at = place.at;
    let mut open: Option<Splice> = None;
    for (sign, line) in &hunk.lines {
        if *sign == Sign::Keep {
            found.extend(open.take());
            at += 1;
            continue;
        }
        let splice =
            open.get_or_insert_with(|| Splice { edit, at: at..at, lines: Vec::new(), ends: None });
        if *sign == Sign::Remove {
            at += 1;
            splice.at.end = at;
        } else {
            splice.lines.push(adapted(line));
        }
    }
    found.extend(open);
    if at == text.lines.len()
        && let Some(last) = found[before..].last_mut()
    {
        last.ends = hunk.ends;
    }
}
