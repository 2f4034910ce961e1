//! Finds the lines that an edit replaces: the ladder from exact to lenient. A rung is tried when the
//! rungs before it found nothing, and it must find one place.
use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::hunk::Hunk;
use super::text::Text;
use crate::program::refusal::Refusal;

/// How far off the line number of an edit may be to choose between equal places.
const NEAR: usize = 3;

/// How many places a refusal names.
const NAMED: usize = 5;

/// How many places that differ in indentation are compared line by line.
const SHIFTED: usize = 4096;

/// How many lines are compared with one that is missing.
const COMPARED: usize = 10_000;

/// What may differ between the lines of an edit and those of the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rung {
    Exact,
    /// White space at the ends of lines, so line ends too.
    Space,
    /// The indentation of all lines, by the same.
    Indent,
    /// Typographic punctuation, which models put for plain.
    Punctuation,
}

impl Rung {
    pub(super) const ALL: &[Self] = &[Self::Exact, Self::Space, Self::Indent, Self::Punctuation];
    pub(super) const LENIENT: &[Self] = &[Self::Space, Self::Indent, Self::Punctuation];

    fn key(self, line: &str) -> Cow<'_, str> {
        match self {
            Self::Exact => Cow::Borrowed(line),
            Self::Space => Cow::Borrowed(line.trim_end()),
            Self::Indent => Cow::Borrowed(line.trim()),
            Self::Punctuation => plain(line.trim()),
        }
    }
}

/// A line with plain punctuation.
fn plain(line: &str) -> Cow<'_, str> {
    if line.is_ascii() {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len());
    for char in line.chars() {
        match char {
            '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' | '\u{2032}' => out.push('\''),
            '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' | '\u{2033}' => out.push('"'),
            '\u{2010}'..='\u{2015}' | '\u{2212}' => out.push('-'),
            '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => {
                out.push(' ')
            }
            '\u{2026}' => out.push_str("..."),
            other => out.push(other),
        }
    }
    Cow::Owned(out)
}

/// The place of an edit.
#[derive(Debug)]
pub(super) struct Match<'a> {
    /// The first line, from 0.
    pub(super) at: usize,
    pub(super) rung: Rung,
    pub(super) shift: Shift<'a>,
}

/// How the indentation of the step differs from that of the edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shift<'a> {
    None,
    More(&'a str),
    Less(&'a str),
}

impl Shift<'_> {
    /// A line of the edit with the indentation of the step.
    pub(super) fn apply(self, line: &str) -> String {
        match self {
            Self::More(more) if !line.trim().is_empty() => [more, line].concat(),
            Self::Less(less) => line.strip_prefix(less).unwrap_or(line).to_owned(),
            _ => line.to_owned(),
        }
    }
}

/// Why there is no one place.
#[derive(Debug)]
pub(super) enum Miss {
    Nowhere,
    /// The first lines of equal places, from 0.
    Many(Vec<usize>),
}

/// The place of the old lines of a hunk.
pub(super) fn lines<'a>(
    text: &Text<'a>,
    hunk: &Hunk<'a>,
    rungs: &[Rung],
) -> Result<Match<'a>, Miss> {
    let (old, new) = (hunk.before(), hunk.after());
    if old.is_empty() {
        // Only a step without code has such a place.
        return Ok(Match { at: 0, rung: Rung::Exact, shift: Shift::None });
    }
    for rung in rungs.iter().copied() {
        let keys: Vec<_> = text.lines.iter().map(|line| rung.key(line)).collect();
        let wanted: Vec<_> = old.iter().map(|line| rung.key(line)).collect();
        let places = all(&wanted, &keys);
        let matches: Vec<_> = match rung {
            Rung::Exact | Rung::Space => {
                places.into_iter().map(|at| Match { at, rung, shift: Shift::None }).collect()
            }
            Rung::Indent | Rung::Punctuation => {
                let shifted = places.into_iter().take(SHIFTED).filter_map(|at| {
                    let shift = shift(&text.lines[at..], &old, &new)?;
                    Some(Match { at, rung, shift })
                });
                shifted.collect()
            }
        };
        if !matches.is_empty() {
            return one(text, hunk, matches);
        }
    }
    Err(Miss::Nowhere)
}

/// The only place, or the one that the line number or the section of the hunk means.
fn one<'a>(
    text: &Text<'_>,
    hunk: &Hunk<'_>,
    mut matches: Vec<Match<'a>>,
) -> Result<Match<'a>, Miss> {
    if matches.len() > 1
        && let Some(within) = hunk.section.and_then(|section| block_of(text, section))
        && matches.iter().filter(|place| within.contains(&place.at)).count() == 1
    {
        matches.retain(|place| within.contains(&place.at));
    }
    if matches.len() > 1 {
        let places: Vec<_> = matches.iter().map(|place| place.at).collect();
        let index = nearest_to(&places, hunk.line).ok_or(Miss::Many(places))?;
        return Ok(matches.swap_remove(index));
    }
    matches.pop().ok_or(Miss::Nowhere)
}

/// The index of the place that a line number, from 1, means: the nearest, if it is near and the only
/// one as near.
fn nearest_to(places: &[usize], line: Option<usize>) -> Option<usize> {
    let line = line?.saturating_sub(1);
    let off = |at: usize| places[at].abs_diff(line);
    let best = (0..places.len()).min_by_key(|at| off(*at))?;
    let equal = (0..places.len()).filter(|at| off(*at) == off(best)).count();
    (off(best) <= NEAR && equal == 1).then_some(best)
}

/// The lines of the function or class that begins with this line, if there is one.
fn block_of(text: &Text<'_>, section: &str) -> Option<Range<usize>> {
    let heads = (0..text.lines.len()).filter(|at| text.lines[*at].trim().starts_with(section));
    let heads: Vec<_> = heads.take(2).collect();
    let [head] = heads[..] else { return None };
    let indent = |line: &str| line.len() - line.trim_start().len();
    let own = indent(text.lines[head]);
    let ends = |at: &usize| !text.lines[*at].trim().is_empty() && indent(text.lines[*at]) <= own;
    let end = (head + 1..text.lines.len()).find(ends).unwrap_or(text.lines.len());
    Some(head..end)
}

/// How the lines of the step are indented in comparison with `old`, if all by the same. What is taken
/// away must be there on all lines of `new` too.
fn shift<'a>(step: &[&'a str], old: &[&'a str], new: &[&'a str]) -> Option<Shift<'a>> {
    let indent = |line: &'a str| &line[..line.len() - line.trim_start().len()];
    let mut pairs = step.iter().zip(old).filter(|(_, line)| !line.trim().is_empty());
    let Some((there, here)) = pairs.next() else { return Some(Shift::None) };
    let (there, here) = (indent(there), indent(here));
    let shift = match (there.strip_suffix(here), here.strip_suffix(there)) {
        (Some(""), _) => Shift::None,
        (Some(more), _) => Shift::More(more),
        (None, Some(less)) => Shift::Less(less),
        (None, None) => return None,
    };
    let less = match shift {
        Shift::Less(less) => less,
        _ => "",
    };
    let kept = new.iter().all(|line| line.trim().is_empty() || line.starts_with(less));
    let same = pairs.all(|(there, here)| indent(there) == shift.apply_to(indent(here)));
    (kept && same).then_some(shift)
}

impl Shift<'_> {
    /// An indentation of the edit as that of the step.
    fn apply_to(self, indent: &str) -> Cow<'_, str> {
        match self {
            Self::More(more) => Cow::Owned([more, indent].concat()),
            Self::Less(less) => Cow::Borrowed(indent.strip_prefix(less).unwrap_or("\0")),
            Self::None => Cow::Borrowed(indent),
        }
    }
}

/// The bytes of the only place of a part of the source, or of the one that the line number means.
pub(super) fn within(source: &str, part: &str, line: Option<usize>) -> Result<Range<usize>, Miss> {
    let mut places = Vec::new();
    let (mut from, mut lines, mut counted) = (0, 0, 0);
    let step = part.chars().next().map_or(1, char::len_utf8);
    while let Some(at) = source[from..].find(part).filter(|_| !part.is_empty()) {
        let at = from + at;
        lines += source[counted..at].matches('\n').count();
        counted = at;
        places.push((at, lines));
        // Places may overlap.
        from = at + step;
    }
    let found = match places[..] {
        [] => return Err(Miss::Nowhere),
        [(at, _)] => at,
        _ => {
            let lines: Vec<_> = places.iter().map(|(_, line)| *line).collect();
            let index = nearest_to(&lines, line).ok_or(Miss::Many(lines))?;
            places[index].0
        }
    };
    Ok(found..found + part.len())
}

/// All places of `wanted` in `lines`, overlapping ones too, in linear time (Knuth, Morris, Pratt).
fn all<K: PartialEq>(wanted: &[K], lines: &[K]) -> Vec<usize> {
    let mut back = vec![0; wanted.len()];
    let mut length = 0;
    for at in 1..wanted.len() {
        while length > 0 && wanted[at] != wanted[length] {
            length = back[length - 1];
        }
        length += usize::from(wanted[at] == wanted[length]);
        back[at] = length;
    }
    let mut places = Vec::new();
    length = 0;
    for (at, line) in lines.iter().enumerate() {
        while length > 0 && (length == wanted.len() || *line != wanted[length]) {
            length = back[length - 1];
        }
        length += usize::from(wanted.get(length).is_some_and(|wanted| line == wanted));
        if length == wanted.len() {
            places.push(at + 1 - length);
        }
    }
    places
}

/// What to say of a hunk without a place.
pub(super) fn refusal(
    step: &str,
    text: &Text<'_>,
    hunk: &Hunk<'_>,
    edit: usize,
    miss: Miss,
) -> Refusal {
    let step = step.to_owned();
    if let Miss::Many(places) = miss {
        return Refusal::Ambiguous {
            step,
            edit,
            at: places.into_iter().take(NAMED).map(|at| at + 1).collect(),
        };
    }
    let there: HashSet<&str> = text.lines.iter().map(|line| line.trim()).collect();
    let old = hunk.before();
    let code = |line: &&&str| !line.trim().is_empty();
    let missing = old.iter().filter(code).find(|line| !there.contains(line.trim())).copied();
    let like = missing.or_else(|| old.iter().find(code).copied()).unwrap_or_default().trim();
    let new = hunk.after();
    let keys: Vec<_> = text.lines.iter().map(|line| line.trim_end()).collect();
    let wanted: Vec<_> = new.iter().map(|line| line.trim_end()).collect();
    Refusal::NoMatch {
        step,
        edit,
        missing: missing.map(str::to_owned),
        nearest: nearest(text, like),
        done: new.iter().any(|line| !line.trim().is_empty()) && !all(&wanted, &keys).is_empty(),
    }
}

/// The lines most similar to one, the most similar first.
fn nearest(text: &Text<'_>, like: &str) -> Vec<(usize, String)> {
    let bounded = |line: &str| line[..line.floor_char_boundary(200)].to_owned();
    let like = bounded(like);
    let mut lines: Vec<_> = (1..)
        .zip(&text.lines)
        .take(COMPARED)
        .map(|(number, line)| (number, bounded(line.trim())))
        .filter(|(_, line)| !line.is_empty())
        .map(|(number, line)| (strsim::jaro(&like, &line), number, line))
        .filter(|(likeness, ..)| *likeness > 0.7)
        .collect();
    lines.sort_by(|one, other| other.0.total_cmp(&one.0));
    lines.into_iter().take(3).map(|(_, number, line)| (number, line)).collect()
}
