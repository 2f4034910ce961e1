//! Sources with a word that is nearly one of the language, or with an operator of another language.

use std::cmp::Reverse;

use super::super::lex::Kind;
use super::super::lines::splice;
use super::{Found, Rule, Scene};
use crate::diagnosis::nearest;
use crate::scan::scan;

/// The words of the language, without the constants.
pub(in super::super) const KEYWORDS: [&str; 32] = [
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif",
    "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda",
    "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// Short ones that the likeness of words says nothing about, and those of other languages.
const FOREIGN: [(&str, &str); 7] = [
    ("elseif", "elif"),
    ("elsif", "elif"),
    ("fro", "for"),
    ("fi", "if"),
    ("function", "def"),
    ("func", "def"),
    ("tyr", "try"),
];

const OPERATORS: [(&str, &str); 3] = [("&&", "and"), ("||", "or"), ("!", "not")];

/// The place of the first mistake in a source.
fn first_error(source: &str) -> Option<(usize, usize)> {
    scan(source).errors.first().map(|error| (error.line, error.column))
}

/// Words on the line of the error, and on the one before. Older versions of Python notice some late.
pub(super) fn propose(scene: &Scene<'_>, found: &mut Found<'_>, suspects: &[Vec<usize>]) {
    let Some(before) = first_error(scene.source).map(Some) else { return };
    let mut known = Vec::new();
    for index in suspects.iter().flatten().copied() {
        let token = &scene.lexed.tokens[index];
        let word = scene.text(index);
        if token.kind != Kind::Name || token.nested || KEYWORDS.contains(&word) {
            continue;
        }
        let foreign = FOREIGN.iter().find(|(other, _)| *other == word).map(|(_, ours)| *ours);
        let near = nearest(word, KEYWORDS);
        for keyword in foreign.into_iter().chain(near) {
            let why = format!("`{word}` is no word of the language; `{keyword}` is");
            known.push((Rule::MisspeltKeyword, why, vec![(scene.span(index), keyword.to_owned())]));
        }
    }
    known.extend(operators(scene, suspects));
    // Those with which everything parses, then those with which more does.
    let ended =
        known.into_iter().map(|edit| (first_error(&splice(scene.source, edit.2.clone())), edit));
    let mut better: Vec<_> = ended.filter(|(now, _)| now.is_none() || *now > before).collect();
    better.sort_by_key(|(now, _)| now.map_or((0, Reverse((0, 0))), |place| (1, Reverse(place))));
    for (_, (rule, why, edits)) in better {
        found.add(rule, why, edits);
    }
}

type Edit = (Rule, String, Vec<(std::ops::Range<usize>, String)>);

fn operators(scene: &Scene<'_>, suspects: &[Vec<usize>]) -> Vec<Edit> {
    let mut known = Vec::new();
    for statement in suspects {
        let (Some(first), Some(last)) = (statement.first(), statement.last()) else { continue };
        let (start, end) = (scene.span(*first).start, scene.span(*last).end);
        let Some(text) = scene.source.get(start..end) else { continue };
        let inside = |at: usize| {
            let is_text = |index: &&usize| {
                let token = &scene.lexed.tokens[**index];
                token.kind == Kind::Text && token.span.contains(&(start + at))
            };
            statement.iter().any(|index| is_text(&index))
        };
        for (theirs, ours) in OPERATORS {
            let places = text.match_indices(theirs).map(|(at, _)| at).filter(|at| !inside(*at));
            // `!=` is an operator of the language.
            let places = places.filter(|at| !text[at + theirs.len()..].starts_with('='));
            let edits: Vec<_> = places
                .map(|at| {
                    let span = start + at..start + at + theirs.len();
                    let spaced = |place: Option<char>| place.is_none_or(char::is_whitespace);
                    let lead = match spaced(text[..at].chars().next_back()) || theirs == "!" {
                        true => "",
                        false => " ",
                    };
                    let tail =
                        if spaced(text[at + theirs.len()..].chars().next()) { "" } else { " " };
                    (span, format!("{lead}{ours}{tail}"))
                })
                .collect();
            let why = format!("`{theirs}` is written `{ours}` in Python");
            known.push((Rule::ForeignOperator, why, edits));
        }
        if let Some(rest) =
            text.strip_prefix("else").filter(|rest| rest.trim_start().starts_with("if "))
        {
            let to = start + "else".len() + (rest.len() - rest.trim_start().len()) + "if".len();
            let why = "`else if` is written `elif` in Python".to_owned();
            known.push((Rule::ForeignOperator, why, vec![(start..to, "elif".to_owned())]));
        }
    }
    known
}
