//! Keys a mapping does not have.

use std::ops::Range;

use super::super::lex::Kind;
use super::{Found, Rule, Scene};
use crate::diagnosis::nearest;

pub(super) fn propose(scene: &Scene<'_>, found: &mut Found<'_>) {
    let facts = &scene.fault.facts;
    let Some(key) = facts.name.as_deref().filter(|key| !key.is_empty()) else {
        return;
    };
    let mut places = literals(scene, key, &mut scene.statement.iter().copied());
    // As an index first; as any other text only when there is no index.
    if places.iter().any(|(_, index)| *index) {
        places.retain(|(_, index)| *index);
    }
    if places.is_empty() {
        // The failing line takes the key from a variable. If the text is
        // written only once, that is where it comes from.
        places = literals(scene, key, &mut (0..scene.lexed.tokens.len()));
        if places.len() != 1 {
            return;
        }
    }
    let known = || facts.keys.iter().map(String::as_str);
    let mut near = nearest(key, known());
    if near.is_empty() {
        near.extend(longer_or_shorter(key, known()));
    }
    for near in near {
        if near.contains(['"', '\'', '\\', '\n', '\r', '{', '}']) {
            continue;
        }
        let edits = places.iter().map(|(span, _)| (span.clone(), near.to_owned())).collect();
        let why = format!("there is no key `{key}`; there is `{near}`");
        found.add(Rule::MisspeltKey, why, edits);
    }
}

/// The only key that is the beginning of this one, or begins with it: `host` for `hostname`.
fn longer_or_shorter<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let is_part = |short: &str, long: &str| short.len() >= 3 && long.starts_with(short);
    let mut found = known.filter(|one| is_part(one, key) || is_part(key, one));
    found.next().filter(|_| found.next().is_none())
}

/// Where a text is written as a plain string, without its quotes, and whether
/// it is used there as an index.
fn literals(
    scene: &Scene<'_>,
    text: &str,
    among: &mut dyn Iterator<Item = usize>,
) -> Vec<(Range<usize>, bool)> {
    among
        .filter(|index| scene.lexed.tokens[*index].kind == Kind::Text)
        .filter_map(|index| {
            let span = scene.span(index);
            let written = scene.text(index);
            let quote = written.chars().next().filter(|c| *c == '"' || *c == '\'')?;
            let inner = written.strip_prefix(quote)?.strip_suffix(quote)?;
            let subscript = index > 0 && scene.lexed.is(index - 1, "[");
            (inner == text).then_some((span.start + 1..span.end - 1, subscript))
        })
        .collect()
}
