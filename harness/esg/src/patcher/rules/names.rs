//! Undefined names.

use super::imports::{self, Import};
use super::{Found, Rule, Scene};
use crate::diagnosis::nearest;

/// Words of other languages and formats.
const FOREIGN: [(&str, &str); 6] = [
    ("true", "True"),
    ("false", "False"),
    ("null", "None"),
    ("nil", "None"),
    ("none", "None"),
    ("undefined", "None"),
];

pub(super) fn propose(scene: &Scene<'_>, found: &mut Found<'_>) {
    let Some(name) = scene.fault.facts.name.as_deref().filter(|name| !name.is_empty()) else {
        return;
    };
    let uses: Vec<usize> = scene
        .named(name)
        .filter(|index| !scene.is_argument(*index) && !scene.is_attribute(*index))
        .collect();
    let Some(first) = uses.first().copied() else {
        return;
    };

    let replaced = |new: &str| -> Vec<_> {
        uses.iter().map(|index| (scene.span(*index), new.to_owned())).collect()
    };
    if let Some((_, word)) = FOREIGN.iter().find(|(foreign, _)| *foreign == name) {
        let why = format!("`{name}` is written `{word}` in Python");
        found.add(Rule::MisspeltName, why, replaced(word));
    }
    // A method that leaves out the object that it is called on.
    if scene.fault.facts.attributes.iter().any(|known| known == name) {
        let why = format!("`{name}` is not defined; the object has `self.{name}`");
        found.add(Rule::MissingSelf, why, replaced(&format!("self.{name}")));
    }
    let import = imports::known(scene, name, first);
    if let Some(import) = &import {
        add_import(scene, found, name, import);
    }
    let facts = &scene.fault.facts;
    let scopes = [&facts.locals, &facts.globals, &facts.builtins];
    let names = scopes.into_iter().flatten().map(String::as_str);
    for near in nearest(name, names) {
        let why = format!("`{name}` is not defined; `{near}` is");
        found.add(Rule::MisspeltName, why, replaced(near));
    }
    if import.is_none() {
        // It may be a misspelt module without an import, but a name in scope is likelier.
        let used = scene.lexed.is(first + 1, ".");
        let modules = facts.stdlib.iter().map(String::as_str);
        for module in nearest(name, modules).into_iter().take(1).filter(|_| used) {
            let mut edits = imports::insertion(scene, &Import::Module(module));
            edits.extend(replaced(module));
            let why = format!("`{name}` looks like the module `{module}`, which is not imported");
            found.add(Rule::MissingImport, why, edits);
        }
        if let Some(import) = imports::package(scene, name, first) {
            add_import(scene, found, name, &import);
        }
    }
}

fn add_import(scene: &Scene<'_>, found: &mut Found<'_>, name: &str, import: &Import<'_>) {
    let why = format!("`{name}` is used but never imported: `{import}`");
    found.add(Rule::MissingImport, why, imports::insertion(scene, import));
}
