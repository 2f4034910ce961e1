//! Files that are not there.

use super::super::lex::Kind;
use super::{Found, Rule, Scene};
use crate::diagnosis::nearest;

pub(super) fn propose(scene: &Scene<'_>, found: &mut Found<'_>) {
    let facts = &scene.fault.facts;
    let Some(name) = facts.name.as_deref().filter(|name| !name.is_empty()) else {
        return;
    };
    // Where its name ends a text: alone, or after a directory.
    let ends = |index: &usize| {
        let text = scene.text(*index);
        let path = text.strip_suffix(['"', '\''])?;
        let before = path.strip_suffix(name)?.chars().next_back()?;
        let end = scene.span(*index).start + path.len();
        matches!(before, '"' | '\'' | '/').then(|| end - name.len()..end)
    };
    let texts = (0..scene.lexed.tokens.len())
        .filter(|index| scene.lexed.tokens[*index].kind == Kind::Text)
        .filter_map(|index| Some((index, ends(&index)?)));
    let (inside, others): (Vec<_>, Vec<_>) =
        texts.partition(|(index, _)| scene.statement.contains(index));
    // The failing line may take it from a variable: the only text that is it.
    let places = match (inside.as_slice(), others.as_slice()) {
        ([], [only]) => std::slice::from_ref(only),
        (inside, _) => inside,
    };
    for near in nearest(name, facts.keys.iter().map(String::as_str)) {
        if near.contains(['"', '\'', '\\', '\n', '\r', '{', '}']) {
            continue;
        }
        let edits = places.iter().map(|(_, span)| (span.clone(), near.to_owned())).collect();
        let why = format!("there is no file `{name}`; there is `{near}`");
        found.add(Rule::MisspeltFile, why, edits);
    }
}
