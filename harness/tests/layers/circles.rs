//! Which file needs which: a name is followed through the modules that only pass it on to the file
//! that declares it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use syn::{Item, UseTree};

use super::imports::{for_tests, module_of, paths};

type Module = Vec<String>;

/// The files of a crate, and which of them each needs. A parent and what is inside it need each
/// other by their nature, and are left out.
pub(super) struct Files {
    needs: BTreeMap<Module, BTreeSet<Module>>,
}

/// What a module passes on.
#[derive(Default)]
struct Exports {
    /// A name, and where it leads.
    names: Vec<(String, Module)>,
    /// Modules all of which is passed on.
    globs: Vec<Module>,
}

impl Files {
    pub(super) fn of(files: &[(PathBuf, String)]) -> Self {
        let modules: BTreeSet<Module> = files.iter().map(|(path, _)| module_of(path)).collect();
        let exports: BTreeMap<Module, Exports> = files
            .iter()
            .map(|(path, text)| {
                let module = module_of(path);
                let exports = exports(&module, text, &modules);
                (module, exports)
            })
            .collect();
        let needs = files
            .iter()
            .map(|(path, text)| {
                let module = module_of(path);
                let named = paths(module.clone(), text);
                let needed = named
                    .into_iter()
                    .filter_map(|path| declared_in(&path, &modules, &exports, 0))
                    .filter(|other| !other.starts_with(&module) && !module.starts_with(other))
                    .collect();
                (module, needed)
            })
            .collect();
        Self { needs }
    }

    /// The circles: one of each file that needs itself by way of others.
    pub(super) fn circles(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let mut circles = Vec::new();
        for module in self.needs.keys() {
            let Some(circle) = self.circle(module) else { continue };
            let members: BTreeSet<Module> = circle.iter().cloned().collect();
            if seen.insert(members) {
                let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
                circles.push(format!("{} -> {}", names.join(" -> "), names[0]));
            }
        }
        circles
    }

    /// The shortest way from a file to itself.
    fn circle(&self, start: &Module) -> Option<Vec<Module>> {
        let mut before: BTreeMap<&Module, &Module> = BTreeMap::new();
        let mut open = VecDeque::from([start]);
        while let Some(at) = open.pop_front() {
            for next in self.needs.get(at).into_iter().flatten() {
                if next == start {
                    let mut way = vec![at.clone()];
                    let mut here = at;
                    while let Some(previous) = before.get(here) {
                        way.push((*previous).clone());
                        here = previous;
                    }
                    way.reverse();
                    return Some(way);
                }
                if !before.contains_key(next) {
                    before.insert(next, at);
                    open.push_back(next);
                }
            }
        }
        None
    }

    /// What is wrong with the files of a room, which stand in rows from the bottom: a file needs
    /// only those of the rows below its own.
    pub(super) fn faults(&self, room: &str, rows: &[&[&str]]) -> Vec<String> {
        let inside = |module: &Module| match &module[..] {
            [first, file @ ..] if first == room && !file.is_empty() => Some(file.join("::")),
            _ => None,
        };
        let row = |file: &str| rows.iter().position(|row| row.contains(&file));
        let files: BTreeSet<String> = self.needs.keys().filter_map(inside).collect();
        let mut faults: Vec<String> = rows
            .concat()
            .iter()
            .filter(|file| !files.contains(**file))
            .map(|file| format!("{room}: there is no `{file}`"))
            .collect();
        for (module, needed) in &self.needs {
            let Some(file) = inside(module) else { continue };
            let Some(at) = row(&file) else {
                faults.push(format!("{room}: `{file}` has no place in its room"));
                continue;
            };
            for other in needed.iter().filter_map(inside).filter(|other| *other != file) {
                if row(&other).is_some_and(|there| there >= at) {
                    faults.push(format!("{room}: `{file}` names `{other}`, which is not below it"));
                }
            }
        }
        faults
    }
}

/// The file that declares what a path names.
fn declared_in(
    path: &[String],
    modules: &BTreeSet<Module>,
    exports: &BTreeMap<Module, Exports>,
    depth: usize,
) -> Option<Module> {
    let known = (0..=path.len()).rev().find(|length| modules.contains(&path[..*length]))?;
    let module = path[..known].to_vec();
    let Some(name) = path.get(known) else { return Some(module) };
    if depth > 16 {
        return Some(module);
    }
    let own = exports.get(&module)?;
    if let Some((_, target)) = own.names.iter().find(|(exported, _)| exported == name) {
        let rest = [&target[..], &path[known + 1..]].concat();
        return declared_in(&rest, modules, exports, depth + 1);
    }
    // What a module passes on as a whole is only searched for names that it passes on itself.
    let through = own.globs.iter().find_map(|glob| {
        let at = exports.get(glob)?;
        at.names.iter().any(|(exported, _)| exported == name).then(|| {
            declared_in(
                &[&glob[..], std::slice::from_ref(name)].concat(),
                modules,
                exports,
                depth + 1,
            )
        })
    });
    through.flatten().or(Some(module))
}

fn exports(module: &Module, text: &str, modules: &BTreeSet<Module>) -> Exports {
    let mut exports = Exports::default();
    for item in syn::parse_file(text).unwrap().items {
        if let Item::Use(item) = item
            && !for_tests(&item.attrs)
        {
            tree(module, &item.tree, &[], modules, &mut exports);
        }
    }
    exports
}

fn tree(
    module: &Module,
    tree_of: &UseTree,
    before: &[String],
    modules: &BTreeSet<Module>,
    exports: &mut Exports,
) {
    let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
    match tree_of {
        UseTree::Path(path) => tree(module, &path.tree, &with(&path.ident), modules, exports),
        UseTree::Name(name) => {
            if let Some(target) = absolute(module, &with(&name.ident), modules) {
                exports.names.push((name.ident.to_string(), target));
            }
        }
        UseTree::Rename(name) => {
            if let Some(target) = absolute(module, &with(&name.ident), modules) {
                exports.names.push((name.rename.to_string(), target));
            }
        }
        UseTree::Glob(_) => exports.globs.extend(absolute(module, before, modules)),
        UseTree::Group(group) => {
            group.items.iter().for_each(|part| tree(module, part, before, modules, exports));
        }
    }
}

/// A path of a `use` from the root of the crate; `None` if it leads to another crate.
fn absolute(module: &Module, path: &[String], modules: &BTreeSet<Module>) -> Option<Module> {
    let mut here = match path.first().map(String::as_str)? {
        "crate" => Vec::new(),
        "self" | "super" => module.clone(),
        child => {
            let inside = [&module[..], &[child.to_owned()]].concat();
            modules.contains(&inside).then(|| module.clone())?
        }
    };
    for part in path {
        match part.as_str() {
            "crate" | "self" => {}
            "super" => {
                here.pop();
            }
            _ => here.push(part.clone()),
        }
    }
    Some(here)
}

/// How many lines each room has, without its tests.
pub(super) fn lines(files: &[(PathBuf, String)]) -> BTreeMap<String, usize> {
    let mut rooms = BTreeMap::new();
    for (path, text) in files {
        let room = module_of(Path::new(path)).into_iter().next().unwrap_or_default();
        *rooms.entry(room).or_default() += text.lines().count();
    }
    rooms
}
