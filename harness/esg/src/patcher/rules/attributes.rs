//! Attributes an object or a module does not have.

use super::super::lex::Kind;
use super::imports::{self, Import};
use super::{Found, Rule, Scene};
use crate::diagnosis::nearest;

/// What other languages call the methods of Python's own types.
const FOREIGN: [(&str, &str, &str); 14] = [
    ("list", "push", "append"),
    ("list", "add", "append"),
    ("list", "length", "__len__"),
    ("list", "indexOf", "index"),
    ("set", "append", "add"),
    ("set", "push", "add"),
    ("dict", "iteritems", "items"),
    ("dict", "itervalues", "values"),
    ("dict", "iterkeys", "keys"),
    ("dict", "add", "update"),
    ("str", "trim", "strip"),
    ("str", "toUpperCase", "upper"),
    ("str", "toLowerCase", "lower"),
    ("deque", "push", "append"),
];

pub(super) fn propose(scene: &Scene<'_>, found: &mut Found<'_>) {
    let facts = &scene.fault.facts;
    let Some(name) = facts.name.as_deref() else {
        return;
    };
    let owner = facts.owner.as_deref().unwrap_or("object");
    let uses: Vec<usize> = scene.named(name).filter(|index| scene.is_attribute(*index)).collect();
    // The same attribute of two objects: only the place shows which one fails.
    let failing = scene.fault.frames.last().and_then(|frame| {
        let end = scene.lines.byte(frame.end_line? as usize, frame.end_column? as usize)?;
        uses.iter().copied().find(|index| scene.span(*index).end == end)
    });
    let uses = match failing {
        Some(index) => vec![index],
        None => uses,
    };
    elsewhere(scene, found, name, &uses);
    let known = FOREIGN.iter().filter(|(kind, foreign, _)| *kind == owner && *foreign == name);
    let known = known.map(|(_, _, own)| *own).filter(|own| !own.starts_with('_'));
    let attributes = facts.attributes.iter().map(String::as_str);
    for near in known.chain(nearest(name, attributes)) {
        let edits = uses.iter().map(|index| (scene.span(*index), near.to_owned())).collect();
        let why = format!("`{owner}` has no `{name}`; it has `{near}`");
        found.add(Rule::MisspeltAttribute, why, edits);
    }
}

/// A module that is taken for its member of the same name, or the reverse: `datetime.now()` after `import
/// datetime`, `datetime.timedelta(1)` after `from datetime import datetime`, and `os.join()`.
fn elsewhere(scene: &Scene<'_>, found: &mut Found<'_>, name: &str, uses: &[usize]) {
    let facts = &scene.fault.facts;
    for member in &facts.members {
        let at = |index: &usize| scene.span(*index).start;
        let edits = uses.iter().map(|index| (at(index)..at(index), format!("{member}."))).collect();
        let why = format!("the module has no `{name}`; its `{member}` has");
        found.add(Rule::AttributeElsewhere, why, edits);
    }
    let Some(module) = facts.module.as_deref() else { return };
    let member = |index: &&usize| **index >= 2 && scene.lexed.tokens[*index - 2].kind == Kind::Name;
    let uses: Vec<usize> = uses.iter().filter(member).copied().collect();
    let in_scope = |scope: &Vec<String>| scope.iter().any(|known| known == name);
    let qualified = uses.iter().all(|index| scene.is_attribute(index - 2));
    // An import comes first: it may be put where the first of the others begins.
    let mut edits = match qualified || in_scope(&facts.locals) || in_scope(&facts.globals) {
        true => Vec::new(),
        false => imports::insertion(scene, &Import::From(module, name)),
    };
    let member = |index: &usize| scene.span(index - 2).start..scene.span(*index).start;
    edits.extend(uses.iter().map(|index| (member(index), String::new())));
    let why = format!("its member has no `{name}`; the module `{module}` has");
    found.add(Rule::AttributeElsewhere, why, edits);
}

/// `from module import name` where the module has no such name.
pub(super) fn propose_imported(scene: &Scene<'_>, found: &mut Found<'_>) {
    let facts = &scene.fault.facts;
    let Some(name) = facts.name.as_deref() else {
        return;
    };
    let module = facts.owner.as_deref().unwrap_or("the module");
    let Some(at) = scene.named(name).last() else {
        return;
    };
    for near in nearest(name, facts.attributes.iter().map(String::as_str)) {
        let why = format!("`{module}` has no `{name}`; it has `{near}`");
        found.add(Rule::MisspeltAttribute, why, vec![(scene.span(at), near.to_owned())]);
    }
}
